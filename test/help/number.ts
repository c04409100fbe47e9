/** Values of the range columns for a question that is not numeric. */
export const no_range = {
  range_min: null,
  range_max: null,
  unit: null,
  open_min: false,
  open_max: false,
};
