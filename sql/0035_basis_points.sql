-- compat: stop the processes of an older program first; it stores no predictions on the result.
--
-- Probabilities are whole basis points, 0 to 10,000: hundredths of a percent.

lock table predictions, scores in access exclusive mode;

alter table predictions
  drop constraint predictions_probability_check,
  drop constraint predictions_confidence_check,
  drop constraint predictions_prior_probability_check;
update predictions
set
  probability = 100 * probability,
  confidence = 100 * confidence,
  prior_probability = 100 * prior_probability,
  probabilities = (
    select array_agg((100 * percent)::smallint order by place)
    from unnest(probabilities) with ordinality as o (percent, place)
  );
alter table predictions
  add constraint predictions_probability_check check (probability between 0 and 10000),
  add constraint predictions_confidence_check check (confidence between 0 and 10000),
  add constraint predictions_prior_probability_check
    check (prior_probability between 0 and 10000);

update scores set stated = 100 * stated;

-- In percent, with the decimals that were asked for.
alter table webhooks alter column filter_confidence type numeric;
