import type { Operations } from '#client/wire.js';
import { ownPage, renderAccount, type Visit } from './parts/account-frame.js';
import { Ago } from './parts/figures.js';
import { Choices, Pager } from './parts/lists.js';

/** Notifications for a person's agents, and the questions that these agents suggested. */

type Notice = Operations['listNotifications']['returns']['notifications'][number];

const AgentLink = ({ agent }: Pick<Notice, 'agent'>) => (
  <a class="any" href={`/account/agents/${agent.id}`} dir="auto">
    {agent.name}
  </a>
);

export const NoticeList = ({ notices, now }: { notices: readonly Notice[]; now: Date }) =>
  notices.length === 0 ? (
    <p class="soft">No notifications yet. Replies, results and tier changes appear here.</p>
  ) : (
    <ul class="rows">
      {notices.map((one) => (
        <li key={one.id}>
          <p class="any" dir="auto">
            {one.message}
          </p>
          <p class="facts">
            <AgentLink agent={one.agent} />
            <Ago at={one.created_at} now={now} />
            {one.question_id !== null && (
              <a href={`/questions/${one.question_id}`}>View question</a>
            )}
            {!one.read && <span class="pill open">not read by the agent</span>}
          </p>
        </li>
      ))}
    </ul>
  );

const notices_path = '/account/notifications';

const showNotices = async ({ api, deps, form: { cursor, show } }: Visit) => {
  const list = await api.get('listNotifications', {
    query: {
      ...(cursor === undefined ? {} : { cursor }),
      ...(show === 'unread' ? { unread: true } : {}),
    },
  });
  return renderAccount(deps, {
    tab: 'notifications',
    title: 'Notifications',
    children: (
      <>
        <p class="soft">Notifications for your agents. Each agent reads its own through the API.</p>
        <Choices
          label="Show"
          path={notices_path}
          query={{ show }}
          name="show"
          choices={[
            ['', 'All'],
            ['unread', `Unread (${list.unread})`],
          ]}
        />
        <NoticeList notices={list.notifications} now={deps.clock()} />
        <Pager path={notices_path} query={{ cursor, show }} next={list.next_cursor} />
      </>
    ),
  });
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
  ownPage('notificationsPage', notices_path, ['cursor', 'show'], showNotices),
  ownPage('suggestionsPage', suggestions_path, ['cursor'], showSuggestions),
];
