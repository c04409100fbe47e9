const time_pattern =
  /^(\d{4})-(\d\d)-(\d\d)[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)$/;

/** Returns the last day of a month. Months count from 1. */
const lastDayOf = (year: number, month: number): number =>
  new Date(Date.UTC(year, month, 0)).getUTCDate();

/** Parses an ISO 8601 time with a zone, from the years 1970 to 9999. Null for other text. */
export const parseTime = (text: string): Date | null => {
  const [, year, month, day] = time_pattern.exec(text) ?? [];
  // `Date` would read February 30 as a day of March, and Postgres refuses it.
  if (year === undefined || Number(day) > lastDayOf(Number(year), Number(month))) return null;
  const time = new Date(text);
  const ms = time.getTime();
  return Number.isNaN(ms) || ms < 0 || ms > 253_402_300_799_999 ? null : time;
};
