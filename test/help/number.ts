/** The columns of a question that asks for no number. */
export const no_range = {
  range_min: null,
  range_max: null,
  unit: null,
  open_min: false,
  open_max: false,
};
