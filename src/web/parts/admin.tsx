import type { ComponentChildren } from 'preact';
import type { Api } from '../page-route.js';
import type { FormFault } from './forms.js';
import { FormProblem } from './forms.js';

/** Shared by all admin pages: the navigation, and actions that take two clicks. */

const places = [
  ['/admin', 'Queue'],
  ['/admin/reports', 'Reports'],
  ['/admin/questions', 'Questions'],
  ['/admin/import', 'Import'],
  ['/admin/agents', 'Agents'],
  ['/admin/people', 'People'],
  ['/admin/audit', 'Audit log'],
] as const;

/** Returns the number of open reported cases, for the navigation. */
export const countReports = async (api: Api): Promise<number> =>
  (await api.get('listReports', { query: { status: 'open', limit: 1 } })).total;

export const AdminNav = ({
  here,
  reports,
}: {
  here: (typeof places)[number][0];
  reports: number;
}) => (
  <nav class="tabs" aria-label="Administration">
    {places.map(([href, label]) => (
      <a key={href} href={href} aria-current={href === here ? 'page' : undefined}>
        {label}
        {href === '/admin/reports' && reports > 0 && <small> {reports}</small>}
      </a>
    ))}
  </nav>
);

/**
 * An action that takes two clicks: the first opens a form, and the second sends the form. The form
 * goes to the page of the action's subject, and `act` names the action.
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
  /** The text of the button that sends the form. */
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

/** A reason for the audit log and, if it is public, for everybody in the moderation log. */
export const Reason = ({ id, is_public = false }: { id: string; is_public?: boolean }) => (
  <div class="field">
    <label for={id}>Reason</label>
    <input
      id={id}
      name="reason"
      required
      minLength={3}
      maxLength={2_000}
      aria-describedby={is_public ? `${id}-hint` : undefined}
    />
    {is_public && (
      <p class="soft" id={`${id}-hint`}>
        Everybody can read this reason. Name no person.
      </p>
    )}
  </div>
);
