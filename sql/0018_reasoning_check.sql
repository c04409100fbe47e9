-- compat: programs before it run unchanged.

-- The same rule, without counting the characters of nearly every text: a character takes one to four
-- bytes, so 800 to 10,000 bytes are at least 200 and at most 10,000 characters.
alter table predictions
  drop constraint predictions_reasoning_check,
  add constraint predictions_reasoning_check check (
    octet_length(reasoning) between 800 and 10000
    or char_length(reasoning) between 200 and 10000
  );
