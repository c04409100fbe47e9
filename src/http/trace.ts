/** Version, trace, span, flags, and what a later version adds. */
const pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/**
 * The trace of a request by its `traceparent` (W3C Trace Context), for log lines in the words of
 * OpenTelemetry: the span is that of the caller, because none are made here. Null for a request
 * that is in no trace, or whose header is wrong: that is no error.
 */
export const readTrace = (
  traceparent: string,
): { readonly trace_id: string; readonly span_id: string } | null => {
  const [, version = 'ff', trace_id = '', span_id = '', rest] = pattern.exec(traceparent) ?? [];
  const is_known = version !== 'ff' && !(version === '00' && rest !== undefined);
  const is_named = !/^0+$/.test(trace_id) && !/^0+$/.test(span_id);
  return is_known && is_named ? { trace_id, span_id } : null;
};
