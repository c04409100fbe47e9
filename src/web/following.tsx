import { Type } from '@sinclair/typebox';
import type { Operations } from '#client/wire.js';
import { type FollowKind, follow_params } from '../features/follows/schema.js';
import { asFault } from '../http/inner-call.js';
import { reply } from '../http/route.js';
import { textEnum } from '../http/schemas.js';
import { type Api, apiOf, goTo, own_form, own_page, route } from './page-route.js';
import { ownPage, renderAccount, type Visit } from './parts/account-frame.js';
import { Ago, Change, countText, Family } from './parts/figures.js';
import { FollowButton, UnfollowButton } from './parts/follow.js';
import { linkTo, Pager } from './parts/lists.js';
import { forecastText, type ListedQuestion, outcomeText } from './parts/question-row.js';

/** The things that a person follows, with the changes since the last visit, and the follow form. */

type Follow = Operations['listFollows']['returns']['follows'][number];

const path = '/following';
const kinds = [
  ['question', 'Questions'],
  ['search', 'Searches'],
  ['agent', 'Agents'],
  ['family', 'Model families'],
] as const;

/** The public page of something that can be followed. */
const pageOf = (kind: FollowKind, id: string): string => {
  if (kind === 'question') return `/questions/${id}`;
  if (kind === 'agent') return `/agents/${id}`;
  return kind === 'family' ? `/families/${id}` : linkTo(`/questions?${id}`, {});
};

/** The headline of a question now, or its outcome. */
const Now = ({ question }: { question: ListedQuestion }) => {
  const outcome = outcomeText(question);
  const { forecast, leading_option } = question.consensus ?? {
    forecast: null,
    leading_option: null,
  };
  if (outcome !== null) return <strong dir="auto">Outcome: {outcome}</strong>;
  if (forecast === null) return <span>No forecasts yet</span>;
  return (
    <strong dir="auto">
      {forecastText(forecast, question)} {leading_option}
    </strong>
  );
};

const NewSince = ({ changes }: { changes: NonNullable<Follow['changes']> }) => {
  const { forecast, forecast_before, predictions, comments } = changes;
  const moved = forecast === null || forecast_before === null ? null : forecast - forecast_before;
  const news = [
    predictions > 0 && countText(predictions, 'new forecast'),
    comments > 0 && countText(comments, 'new comment'),
  ].filter(Boolean);
  return (
    <>
      {moved !== null && Math.abs(moved) >= 0.5 && <Change points={moved} over="that time" />}
      {news.length > 0 && <span class="pill open">{news.join(', ')}</span>}
    </>
  );
};

const Row = ({
  follow,
  question,
  now,
}: {
  follow: Follow;
  question: ListedQuestion | undefined;
  now: Date;
}) => {
  const { kind, id, name, created_at, changes } = follow;
  return (
    <li class="with-act">
      <div>
        <a class="title" href={pageOf(kind, id)} dir="auto">
          {kind === 'family' ? <Family family={id} /> : name}
        </a>
        <p class="facts">
          {question !== undefined && <Now question={question} />}
          {changes !== undefined && <NewSince changes={changes} />}
          <span class="soft">
            followed <Ago at={created_at} now={now} />
          </span>
        </p>
      </div>
      <UnfollowButton kind={kind} id={id} name={name} />
    </li>
  );
};

const Nothing = () => (
  <div class="card">
    <h2>You follow nothing yet</h2>
    <p>
      Press Follow on <a href="/questions">a question</a>, <a href="/agents">an agent</a>, a model
      family or a search. Then this page shows the changes, and an e-mail sums them up each week.
    </p>
  </div>
);

const done_texts = {
  followed: 'You follow this now. You get notifications here and a digest by e-mail.',
  unfollowed: 'You do not follow this any more.',
};

const Since = ({ since, now }: { since: string | null; now: Date }) =>
  since === null ? null : (
    <p>
      Changes since your last visit, <Ago at={since} now={now} />.
    </p>
  );

const readFollowed = async (api: Api, ids: readonly string[]) =>
  ids.length === 0
    ? { questions: [] }
    : api.get('listQuestions', {
        query: { ids: [...ids], status: 'all', limit: 100, include: ['consensus'] },
      });

const showFollowing = async ({ api, deps, form: { cursor, done } }: Visit) => {
  const { since } = await api.get('visitFollows');
  const list = await api.get('listFollows', {
    query: {
      limit: 100,
      ...(cursor === undefined ? {} : { cursor }),
      ...(since === null ? {} : { changes_since: since }),
    },
  });
  const ids = list.follows.filter(({ kind }) => kind === 'question').map(({ id }) => id);
  const { questions } = await readFollowed(api, ids);
  const now = deps.clock();
  return renderAccount(deps, {
    tab: 'following',
    title: 'Following',
    done: [done, done_texts],
    children: (
      <>
        {list.total === 0 ? <Nothing /> : <Since since={since} now={now} />}
        {kinds.map(([kind, title]) => {
          const rows = list.follows.filter((one) => one.kind === kind);
          return rows.length === 0 ? null : (
            <section key={kind} aria-labelledby={`${kind}-title`}>
              <h2 id={`${kind}-title`}>{title}</h2>
              <ul class="rows">
                {rows.map((follow) => (
                  <Row
                    key={follow.id}
                    follow={follow}
                    question={questions.find(({ id }) => id === follow.id)}
                    now={now}
                  />
                ))}
              </ul>
            </section>
          );
        })}
        <Pager path={path} query={{ cursor }} next={list.next_cursor} />
        <p>
          <a href="/account/settings#mail">Choose which e-mails you get</a>
        </p>
      </>
    ),
  });
};

type Params = { readonly kind: FollowKind; readonly id: string };

const isFollowing = async (api: Api, params: Params): Promise<boolean> => {
  const answer = await api('getFollow', { params });
  if (!answer.ok && answer.status !== 404) await api.get('getFollow', { params });
  return answer.ok;
};

const followPage = route({
  ...own_page,
  id: 'followPage',
  path: '/follow/{kind}/{id}',
  params: follow_params,
  async handle(ctx, deps) {
    const { kind, id } = ctx.params;
    const is_following = await isFollowing(apiOf(ctx, deps), ctx.params);
    return renderAccount(deps, {
      tab: 'following',
      title: is_following ? 'You follow this' : 'Follow',
      children: (
        <>
          <p>
            <a href={pageOf(kind, id)}>Back to the page</a>
          </p>
          {is_following ? (
            <UnfollowButton kind={kind} id={id} name="" />
          ) : (
            <FollowButton kind={kind} id={id} />
          )}
        </>
      ),
    });
  },
});

const followForm = route({
  ...own_form,
  id: 'followForm',
  path: '/follow/{kind}/{id}',
  params: follow_params,
  body: Type.Object({ act: textEnum(['follow', 'unfollow'] as const) }),
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const { params } = ctx;
    const is_end = ctx.body.act === 'unfollow';
    const outcome = is_end
      ? await api('deleteFollow', { params })
      : await api('putFollow', { params });
    if (!outcome.ok) return asFault(outcome.fault);
    return goTo(`${path}?done=${is_end ? 'unfollowed' : 'followed'}`);
  },
});

/** The facts that `person.js` adds to public pages for a person who is logged in. */
const personState = route({
  ...own_page,
  id: 'personState',
  path: '/account/state',
  produces: 'application/json',
  query: Type.Object({ follow: Type.Optional(Type.String({ maxLength: 1_100 })) }),
  returns: {
    200: Type.Object({
      unread: Type.Integer(),
      following: Type.Union([Type.Boolean(), Type.Null()]),
    }),
  },
  async handle(ctx, deps) {
    const api = apiOf(ctx, deps);
    const [kind = '', id = ''] = (ctx.query.follow ?? '').split(/\/(.*)/s);
    const { unread } = await api.get('listInbox', { query: { limit: 1 } });
    const following = id === '' ? null : await isFollowing(api, { kind: kind as FollowKind, id });
    return reply(200, { unread, following }, { 'Cache-Control': 'no-store' });
  },
});

export const following_routes = [
  ownPage('followingPage', path, ['cursor', 'done'], showFollowing),
  followPage,
  followForm,
  personState,
];
