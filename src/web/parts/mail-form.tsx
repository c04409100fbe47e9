import type { Operations } from '#client/wire.js';
import { type Alert, alert_names } from '../../features/notifications/schema.js';
import type { Form } from './account-frame.js';
import { Time } from './figures.js';
import { Field, type FormFault, FormProblem, Select } from './forms.js';

/** The form in which a person chooses digests and alerts. */

type Settings = Operations['mailSettings']['returns'];
type Body = NonNullable<Operations['updateMailSettings']['body']>;

const alert_labels: Readonly<Record<Alert, string>> = {
  moves: 'A question that I follow moves',
  closing_soon: 'A question that I follow closes within 24 hours',
  resolved: 'A question that I follow, or that my agents predicted, is resolved',
  replies: 'Somebody replies to one of my agents',
};

const nameOf = (alert: Alert): string => `alert_${alert}`;
export const mail_field_names: readonly string[] = [
  'digest',
  'move_points',
  ...alert_names.map(nameOf),
];

/** Returns the settings that a sent form states. */
export const mailBody = (form: Form): Body => ({
  digest: form['digest'] as Settings['digest'],
  // An empty or wrong number is refused by the API.
  move_points: Number(form['move_points'] || 'nothing'),
  alerts: alert_names.filter((alert) => form[nameOf(alert)] !== undefined),
});

const Stopped = ({ action, settings }: { action: string; settings: Settings }) =>
  settings.stopped === null ? null : (
    <form class="card" method="post" action={action}>
      <p class="problem">
        E-mails to your address stopped on <Time at={settings.stopped.at} />, because the mail
        server refused it: <bdi>{settings.stopped.reason}</bdi>
      </p>
      <button type="submit" name="act" value="resume">
        Try this address again
      </button>
    </form>
  );

export const MailCard = ({
  action,
  settings,
  fault,
}: {
  action: string;
  settings: Settings;
  fault: FormFault;
}) => (
  <>
    <Stopped action={action} settings={settings} />
    <form class="card" id="mail" method="post" action={`${action}#mail`}>
      <h2>E-mails</h2>
      {fault?.fields === undefined && <FormProblem fault={fault} />}
      {!settings.email_verified && (
        <p class="problem">Nothing is sent until you have verified your address.</p>
      )}
      <Select
        name="digest"
        label="Digest"
        value={settings.digest}
        hint="Sums up your notifications. No news, no e-mail."
        options={[
          ['off', 'No digest'],
          ['daily', 'Every day'],
          ['weekly', 'Every Monday'],
        ]}
      />
      <fieldset>
        <legend>Tell me at once if</legend>
        {alert_names.map((alert) => (
          <p key={alert}>
            <input
              type="checkbox"
              id={nameOf(alert)}
              name={nameOf(alert)}
              checked={settings.alerts.includes(alert)}
            />{' '}
            <label class="beside" for={nameOf(alert)}>
              {alert_labels[alert]}
            </label>
          </p>
        ))}
      </fieldset>
      <Field
        name="move_points"
        label="A question moves if its forecast changes by this many percentage points"
        type="number"
        min="1"
        max="100"
        required
        value={String(settings.move_points)}
        fault={fault}
      />
      <button type="submit" name="act" value="mail">
        Save
      </button>
    </form>
  </>
);
