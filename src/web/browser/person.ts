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

const refresh = async (): Promise<void> => {
  const follow = form?.dataset['follow'];
  const query = follow === undefined ? '' : `?follow=${encodeURIComponent(follow)}`;
  const answer = await fetch(`/account/state${query}`, { headers: { accept: 'application/json' } });
  if (!answer.ok) {
    if (answer.status === 401) localStorage.removeItem(mark);
    return;
  }
  const state = (await answer.json()) as State;
  showUnread(state.unread);
  if (state.following !== null) showFollowing(state.following);
};

const send = async (follows: HTMLFormElement, act: string): Promise<void> => {
  const answer = await fetch(follows.action, {
    method: 'POST',
    body: new URLSearchParams({ act }),
    redirect: 'manual',
  });
  // A redirect means success. Anything else is shown by sending the form as usual.
  if (answer.type !== 'opaqueredirect') return follows.submit();
  showFollowing(act === 'follow');
  say(act === 'follow' ? 'You follow this now.' : 'You do not follow this any more.');
};

if (remembered()) {
  const update = (): void => void refresh().catch(() => undefined);
  update();
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) update();
  });
  form?.addEventListener('submit', (event) => {
    event.preventDefault();
    if (form !== null && button !== null) send(form, button.value).catch(() => form.submit());
  });
}
