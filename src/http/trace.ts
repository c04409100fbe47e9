/**
 * W3C Trace Context: the `traceparent` and `tracestate` of a request. No spans are made here, so
 * that log lines name the span of the caller, and both headers are passed on with its id.
 */
export interface Trace {
  /** For log lines, as OpenTelemetry names them. */
  readonly ids: { readonly trace_id: string; readonly span_id: string };
  /** For calls that the request causes. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Version, trace, span, flags, and what a later version adds. */
const parent_pattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const zeros = /^0+$/;
/** Sampled, and random trace id. */
const known_flags = 0b11;

const most_members = 32;
const member_pattern =
  /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The list in order, without empty members; empty where one is wrong or comes twice. */
const readState = (text: string): string => {
  const members = text
    .split(',')
    .map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((member) => member !== '');
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf('='))));
  const is_good = members.every((member) => member_pattern.test(member));
  return is_good && keys.size === members.length && keys.size <= most_members
    ? members.join(',')
    : '';
};

/** Null for a request that is in no trace, or whose `traceparent` is wrong: that is no error. */
export const readTrace = (parent: string, state: string): Trace | null => {
  const [, version = '', trace_id = '', span_id = '', flags = '', rest] =
    parent_pattern.exec(parent) ?? [];
  const is_known = version !== '' && version !== 'ff' && !(version === '00' && rest !== undefined);
  if (!is_known || zeros.test(trace_id) || zeros.test(span_id)) return null;
  const kept_flags = (Number.parseInt(flags, 16) & known_flags).toString(16).padStart(2, '0');
  const tracestate = readState(state);
  return {
    ids: { trace_id, span_id },
    headers: {
      traceparent: `00-${trace_id}-${span_id}-${kept_flags}`,
      ...(tracestate === '' ? {} : { tracestate }),
    },
  };
};
