import { type LogEntry, readData } from '../events/index.js';
import { givenBy, type Said, type Stated } from './rules.js';

/** What the event of a prediction says. */
export const saidIn = (entry: LogEntry): Said => {
  const data = readData(entry);
  const option = data['option_index'];
  const has_option = typeof option === 'number';
  return {
    family: String(data['model_family']),
    yes: has_option ? null : data['prediction'] === true,
    option: has_option ? option : null,
    value: Number(has_option ? data['confidence'] : data['probability']),
  };
};

/** The same with the distribution over the options of its question. */
export const statedIn = (entry: LogEntry, options: readonly string[]): Stated => {
  const said = saidIn(entry);
  const named = readData(entry)['probabilities'] as Readonly<Record<string, number>> | undefined;
  const percents = named === undefined ? null : options.map((option) => Number(named[option]));
  return Object.assign(said, { given: givenBy(said, percents, options.length) });
};

/** Bodies end with their time: `…,"timestamp":"2026-01-31T12:00:00.000Z"}`. */
export const timeOf = ({ body }: LogEntry): string => body.slice(-26, -2);
