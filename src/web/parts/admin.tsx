import type { ComponentChildren } from 'preact';
import type { FormFault } from './forms.js';
import { FormProblem } from './forms.js';

/** What the pages of admins share: their navigation, and acts that are asked about twice. */

const places = [
  ['/admin', 'Queue'],
  ['/admin/questions', 'Questions'],
  ['/admin/import', 'Import'],
  ['/admin/agents', 'Agents'],
  ['/admin/people', 'People'],
  ['/admin/audit', 'Audit log'],
] as const;

export const AdminNav = ({ here }: { here: (typeof places)[number][0] }) => (
  <nav class="choices" aria-label="Administration">
    {places.map(([href, label]) => (
      <a key={href} href={href} aria-current={href === here ? 'page' : undefined}>
        {label}
      </a>
    ))}
  </nav>
);

/**
 * An act behind a summary: it is opened first, which asks, and then done. Its form is sent to the
 * page of its subject, and says which act by `act`.
 */
export const Act = ({
  action,
  act,
  label,
  button = label,
  danger = false,
  open = false,
  fault = null,
  children,
}: {
  action: string;
  act: string;
  label: string;
  /** What the button says, which does it. */
  button?: string;
  danger?: boolean;
  open?: boolean;
  fault?: FormFault;
  children?: ComponentChildren;
}) => (
  <details open={open || fault !== null}>
    <summary>{label}…</summary>
    <form method="post" action={action}>
      <input type="hidden" name="act" value={act} />
      <FormProblem fault={fault} />
      {children}
      <button type="submit" class={danger ? 'danger' : undefined}>
        {button}
      </button>
    </form>
  </details>
);

/** A reason that goes into the audit log, and to those whom the act is about. */
export const Reason = ({ id, label = 'Reason' }: { id: string; label?: string }) => (
  <div class="field">
    <label for={id}>{label}</label>
    <input id={id} name="reason" required minLength={3} maxLength={2_000} />
  </div>
);
