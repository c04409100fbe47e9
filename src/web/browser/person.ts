import { say } from './site.js';

/**
 * Public pages are the same for all visitors. For a person who is logged in, this adds the number
 * of unread notifications and whether the person follows the subject of the page.
 */

/** Pages of the account say whether a person is logged in, because scripts cannot see the session. */
const mark = 'person';
const said = document.body.dataset['person'];
const remembered = (): boolean => {
  try {
    if (said !== undefined) localStorage.setItem(mark, said);
    return localStorage.getItem(mark) === '1';
  } catch {
    return said === '1';
  }
};

interface State {
  readonly unread: number;
  readonly following: boolean | null;
}

const bell = document.getElementById('bell');
const form = document.querySelector<HTMLFormElement>('form[data-follow]');
const button = form?.querySelector('button') ?? null;

const showFollowing = (is_following: boolean): void => {
  if (button === null) return;
  button.value = is_following ? 'unfollow' : 'follow';
  button.textContent = is_following ? 'Following' : 'Follow';
  button.title = is_following ? 'Press to unfollow' : '';
};

const showUnread = (unread: number): void => {
  if (bell === null) return;
  bell.hidden = false;
  const count = unread >= 100 ? '99+' : String(unread);
  bell.setAttribute('aria-label', `Notifications, ${count} unread`);
  const place = bell.querySelector('b');
  if (place !== null) place.textContent = unread === 0 ? '' : count;
};

/** Shows the state of the person. Returns whether the person follows the subject; null if unknown. */
const refresh = async (): Promise<boolean | null> => {
  const follow = form?.dataset['follow'];
  const query = follow === undefined ? '' : `?follow=${encodeURIComponent(follow)}`;
  const answer = await fetch(`/account/state${query}`, { headers: { accept: 'application/json' } });
  if (!answer.ok) {
    if (answer.status === 401) localStorage.removeItem(mark);
    return null;
  }
  const { unread, following } = (await answer.json()) as State;
  showUnread(unread);
  if (following !== null) showFollowing(following);
  return following;
};

/** Follows or unfollows. If that fails, for example without a session, opens the page for it. */
const send = async (follows: HTMLFormElement, act: string): Promise<void> => {
  const body = new URLSearchParams({ act });
  await fetch(follows.action, { method: 'POST', body, redirect: 'manual' });
  if ((await refresh()) !== (act === 'follow')) location.href = follows.action;
  else say(act === 'follow' ? 'You follow this now.' : 'You do not follow this any more.');
};

if (remembered()) {
  const update = (): void => void refresh().catch(() => undefined);
  update();
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) update();
  });
  form?.addEventListener('submit', (event) => {
    event.preventDefault();
    if (form === null || button === null) return;
    send(form, button.value).catch(() => {
      location.href = form.action;
    });
  });
}
