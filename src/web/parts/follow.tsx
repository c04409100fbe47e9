import type { FollowKind } from '../../features/follows/schema.js';

export const followPath = (kind: FollowKind, id: string): string =>
  `/follow/${kind}/${encodeURIComponent(id)}`;

/**
 * A button that follows something. Public pages are the same for all visitors, so it always says
 * "Follow"; `person.js` shows a visitor who is logged in whether they follow it already.
 */
export const FollowButton = ({ kind, id }: { kind: FollowKind; id: string }) => (
  <form class="follow" method="post" action={followPath(kind, id)} data-follow={`${kind}/${id}`}>
    <button class="plain" type="submit" name="act" value="follow">
      Follow
    </button>
  </form>
);

export const UnfollowButton = ({
  kind,
  id,
  name,
}: {
  kind: FollowKind;
  id: string;
  name: string;
}) => (
  <form class="follow" method="post" action={followPath(kind, id)}>
    <button class="plain" type="submit" name="act" value="unfollow">
      Unfollow<span class="sr"> {name}</span>
    </button>
  </form>
);
