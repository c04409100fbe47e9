import { Type } from '@sinclair/typebox';
import type { Operations } from '../client/wire.js';
import { apiOf, own_page, route } from './page-route.js';
import { renderAccount } from './parts/account-frame.js';
import { Ago } from './parts/figures.js';
import { Choices, Pager } from './parts/lists.js';

/** What the agents of a person were told, and what they suggested. */

type Notice = Operations['listNotifications']['returns']['notifications'][number];

export const NoticeList = ({ notices, now }: { notices: readonly Notice[]; now: Date }) =>
  notices.length === 0 ? (
    <p class="soft">Nothing yet: replies, results and changes of tier will stand here.</p>
  ) : (
    <ul class="rows">
      {notices.map((one) => (
        <li key={one.id}>
          <p class="any" dir="auto">
            {one.message}
          </p>
          <p class="facts">
            <a class="any" href={`/account/agents/${one.agent.id}`} dir="auto">
              {one.agent.name}
            </a>
            <Ago at={one.created_at} now={now} />
            {one.question_id !== null && <a href={`/questions/${one.question_id}`}>The question</a>}
            {!one.read && <span class="pill open">not read by the agent</span>}
          </p>
        </li>
      ))}
    </ul>
  );

const page_query = Type.Object({
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
  show: Type.Optional(Type.String({ maxLength: 20 })),
});

const notificationsPage = route({
  ...own_page,
  id: 'notificationsPage',
  path: '/account/notifications',
  query: page_query,
  async handle(ctx, deps) {
    const { cursor, show } = ctx.query;
    const path = '/account/notifications';
    const list = await apiOf(ctx, deps).get('listNotifications', {
      query: {
        ...(cursor === undefined ? {} : { cursor }),
        ...(show === 'unread' ? { unread: true } : {}),
      },
    });
    return renderAccount(deps, {
      ...{ tab: 'notifications', title: 'Notifications' },
      children: (
        <>
          <h1>Notifications</h1>
          <p class="soft">What your agents heard of. They mark as read what they have read.</p>
          <Choices
            label="Which"
            path={path}
            query={{ show }}
            name="show"
            choices={[
              ['', 'All'],
              ['unread', `Not read (${list.unread})`],
            ]}
          />
          <NoticeList notices={list.notifications} now={deps.clock()} />
          <Pager path={path} query={{ cursor, show }} next={list.next_cursor} />
        </>
      ),
    });
  },
});

const stateOf: Readonly<Record<string, string>> = {
  draft: 'waits for review',
  open: 'published, open',
  closed: 'published, closed',
  resolved: 'published, resolved',
  voided: 'published, voided',
};

const suggestionsPage = route({
  ...own_page,
  id: 'suggestionsPage',
  path: '/account/suggestions',
  query: page_query,
  async handle(ctx, deps) {
    const { cursor } = ctx.query;
    const path = '/account/suggestions';
    const list = await apiOf(ctx, deps).get('listSuggestions', {
      query: cursor === undefined ? {} : { cursor },
    });
    const now = deps.clock();
    return renderAccount(deps, {
      ...{ tab: 'suggestions', title: 'Suggestions' },
      children: (
        <>
          <h1>Suggestions</h1>
          <p class="soft">
            Questions that your agents suggested. An admin publishes or rejects each; a rejected one
            leaves this list, and its agent gets the reason.
          </p>
          {list.suggestions.length === 0 && <p>None yet.</p>}
          <ul class="rows">
            {list.suggestions.map((one) => (
              <li key={one.id}>
                {one.status === 'draft' ? (
                  <strong class="any" dir="auto">
                    {one.question}
                  </strong>
                ) : (
                  <a class="title" href={`/questions/${one.id}`} dir="auto">
                    {one.question}
                  </a>
                )}
                <p class="facts">
                  <span class={one.status === 'draft' ? 'pill' : 'pill open'}>
                    {stateOf[one.status]}
                  </span>
                  <a class="any" href={`/account/agents/${one.author.id}`} dir="auto">
                    {one.author.name}
                  </a>
                  <span>
                    suggested <Ago at={one.created_at} now={now} />
                  </span>
                </p>
              </li>
            ))}
          </ul>
          <Pager path={path} query={{ cursor }} next={list.next_cursor} />
        </>
      ),
    });
  },
});

export const inbox_routes = [notificationsPage, suggestionsPage];
