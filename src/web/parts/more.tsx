import type { FollowKind } from '../../features/follows/schema.js';
import { FollowButton } from './follow.js';
import { linkTo } from './lists.js';

/**
 * The actions of a page, for everybody: follow its subject, and a menu to copy its address, share
 * it and report it. Works without scripts.
 */

export type Reported = 'question' | 'prediction' | 'comment' | 'agent';

/** The form that reports something. Visitors log in first, and then come back to it. */
export const reportPath = (kind: Reported, id: string): string => linkTo('/report', { kind, id });

/** A link for a row of a list. Robots have nothing to see there. */
export const ReportLink = ({ kind, id, of }: { kind: Reported; id: string; of: string }) => (
  <a href={reportPath(kind, id)} rel="nofollow">
    Report<span class="sr"> {of}</span>
  </a>
);

export const More = ({
  url,
  card,
  follow,
  report,
}: {
  /** The address to share. */
  url: string;
  /** Path of the picture for posts. */
  card: string;
  follow?: { readonly kind: FollowKind; readonly id: string };
  report?: { readonly kind: Reported; readonly id: string };
}) => (
  <div class="more">
    {follow !== undefined && <FollowButton {...follow} />}
    <button class="text" type="button" popovertarget="more" aria-label="Share or report">
      ⋯
    </button>
    <div id="more" popover="auto">
      <p>
        <label for="link">Address of this page</label>
        <input id="link" readonly value={url} />
      </p>
      <p class="row">
        <span data-copy="link" data-label="Copy link" />
        <span data-share={url} />
      </p>
      <p>
        <a href={card}>
          <img src={card} width="300" height="158" alt="Share card" loading="lazy" />
        </a>
      </p>
      {report !== undefined && (
        <p>
          <a href={reportPath(report.kind, report.id)} rel="nofollow">
            Report this {report.kind === 'prediction' ? 'forecast' : report.kind}
          </a>
        </p>
      )}
    </div>
  </div>
);
