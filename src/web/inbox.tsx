import type { Operations } from '#client/wire.js';
import { max_unread } from '../features/notifications/schema.js';
import { goTo } from './page-route.js';
import { ownForm, ownPage, renderAccount, type Visit } from './parts/account-frame.js';
import { Ago } from './parts/figures.js';
import { Choices, Pager } from './parts/lists.js';

/** A person's notifications, and the questions that the person's agents suggested. */

type Item = Operations['listInbox']['returns']['items'][number];
type Author = Pick<
  Operations['listSuggestions']['returns']['suggestions'][number]['author'],
  'id' | 'name'
>;

const AgentLink = ({ agent }: { agent: Author }) => (
  <a class="any" href={`/account/agents/${agent.id}`} dir="auto">
    {agent.name}
  </a>
);

export const InboxList = ({ items, now }: { items: readonly Item[]; now: Date }) =>
  items.length === 0 ? (
    <p class="soft">
      No notifications yet. News of followed questions appears here, and news of your agents.
    </p>
  ) : (
    <ul class="rows">
      {items.map((item) => (
        <li key={item.id} class={item.read ? undefined : 'unread'}>
          <a class="title any" href={item.path} dir="auto">
            {item.message}
          </a>
          <p class="facts">
            <Ago at={item.created_at} now={now} />
            {!item.read && <span class="pill open">new</span>}
          </p>
        </li>
      ))}
    </ul>
  );

const notices_path = '/account/notifications';

const MarkRead = ({ until }: { until: string }) => (
  <form method="post" action={notices_path}>
    <input type="hidden" name="until" value={until} />
    <button class="plain" type="submit">
      Mark all as read
    </button>
  </form>
);

const showInbox = async ({ api, deps, form: { cursor, show, done } }: Visit) => {
  const list = await api.get('listInbox', {
    query: {
      ...(cursor === undefined ? {} : { cursor }),
      ...(show === 'unread' ? { unread: true } : {}),
    },
  });
  const [newest] = list.items;
  return renderAccount(deps, {
    tab: 'notifications',
    title: 'Notifications',
    done: [done, { read: 'All notifications are marked as read.' }],
    children: (
      <>
        <div class="row">
          <Choices
            label="Show"
            path={notices_path}
            query={{ show }}
            name="show"
            choices={[
              ['', 'All'],
              ['unread', `Unread (${list.unread === max_unread ? `${max_unread}+` : list.unread})`],
            ]}
          />
          {list.unread > 0 && cursor === undefined && newest !== undefined && (
            <MarkRead until={newest.id} />
          )}
        </div>
        <InboxList items={list.items} now={deps.clock()} />
        <Pager path={notices_path} query={{ cursor, show }} next={list.next_cursor} />
        <p>
          <a href="/following">Following</a> · <a href="/account/settings#mail">E-mails</a>
        </p>
      </>
    ),
  });
};

const markRead = async ({ api, form: { until = '' } }: Visit) => {
  await api.get('readInbox', { body: { until } });
  return goTo(`${notices_path}?done=read`);
};

const suggestions_path = '/account/suggestions';

const showSuggestions = async ({ api, deps, form: { cursor } }: Visit) => {
  const query = cursor === undefined ? {} : { cursor };
  const list = await api.get('listSuggestions', { query });
  const now = deps.clock();
  return renderAccount(deps, {
    tab: 'suggestions',
    title: 'Suggestions',
    children: (
      <>
        <p class="soft">
          Questions that your agents suggested. An admin publishes or rejects each one. A rejected
          question leaves this list, and its agent is notified.
        </p>
        {list.suggestions.length === 0 && <p>No suggestions yet.</p>}
        <ul class="rows">
          {list.suggestions.map(({ id, status, question, author, created_at }) => (
            <li key={id}>
              {status === 'draft' ? (
                <strong class="any" dir="auto">
                  {question}
                </strong>
              ) : (
                <a class="title" href={`/questions/${id}`} dir="auto">
                  {question}
                </a>
              )}
              <p class="facts">
                <span class={status === 'draft' ? 'pill' : 'pill open'}>
                  {status === 'draft' ? 'waiting for review' : `published, ${status}`}
                </span>
                <AgentLink agent={author} />
                <span>
                  suggested <Ago at={created_at} now={now} />
                </span>
              </p>
            </li>
          ))}
        </ul>
        <Pager path={suggestions_path} query={{ cursor }} next={list.next_cursor} />
      </>
    ),
  });
};

export const inbox_routes = [
  ownPage('notificationsPage', notices_path, ['cursor', 'show', 'done'], showInbox),
  ownForm('notificationsForm', notices_path, ['until'], markRead),
  ownPage('suggestionsPage', suggestions_path, ['cursor'], showSuggestions),
];
