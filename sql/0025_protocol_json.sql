-- compat: programs before it store no predictions on the result; stop their api processes first.

-- How a question is going to be decided, as the agent reads it, is any value of JSON, kept as it was
-- given: a text that is there becomes a JSON string. 4 KiB, or a text of 2,000 characters, which can
-- take more bytes.
alter table predictions
  drop constraint predictions_resolution_protocol_check,
  alter column resolution_protocol type json using to_json(resolution_protocol),
  add constraint predictions_resolution_protocol_check check (
    octet_length(resolution_protocol::text) <= 4096
    or (
      json_typeof(resolution_protocol) = 'string'
      and char_length(resolution_protocol #>> '{}') <= 2000
    )
  );
