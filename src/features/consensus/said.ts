import { type LogEntry, readData } from '../events/index.js';
import type { Said } from './rules.js';

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

/** Bodies end with their time: `…,"timestamp":"2026-01-31T12:00:00.000Z"}`. */
export const timeOf = ({ body }: LogEntry): string => body.slice(-26, -2);
