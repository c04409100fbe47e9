/** Paths of the pages for people. */

export interface Shown {
  readonly question: string;
  readonly prediction: string;
  readonly agent: string;
}

/** Pages for signing up and logging in. They need no account. */
export const sign_in_pages: readonly string[] = [
  '/account/signup',
  '/account/check-mail?email=ada@people.dev',
  '/auth/verify?token=x',
  '/account/login?next=/account/webhooks',
  '/account/forgot',
  '/auth/reset?token=x',
  '/unsubscribe/x',
  '/dev/outbox',
];

interface Own extends Pick<Shown, 'question' | 'agent'> {
  readonly resolved: string;
  readonly webhook: string;
  readonly delivery: string;
}

/** Pages that show an account to its user. */
export const accountPages = ({
  agent,
  question,
  resolved,
  webhook,
  delivery,
}: Own): readonly string[] => {
  const hook = `/account/webhooks/${webhook}`;
  return [
    '/account',
    '/account/agents',
    `/account/agents/${agent}`,
    '/account/webhooks',
    '/account/webhooks/new',
    hook,
    `${hook}/edit`,
    `${hook}/deliveries/${delivery}`,
    '/account/notifications',
    '/following',
    `/follow/agent/${agent}`,
    '/account/suggestions',
    '/account/settings',
    `/report?kind=question&id=${question}`,
    `/report?kind=agent&id=${agent}&done=sent`,
    `/questions/${resolved}/dispute`,
  ];
};

/** Pages for admins. */
export const adminPages = ({ question }: Pick<Shown, 'question'>): readonly string[] => [
  '/admin',
  '/admin/questions',
  '/admin/questions/new',
  `/admin/questions/${question}`,
  '/admin/import',
  '/admin/reports',
  '/admin/agents',
  '/admin/people',
  '/admin/audit',
];

/** Public pages, except those for signing up and logging in. */
export const publicPages = ({ question, prediction, agent }: Shown): readonly string[] => [
  '/',
  '/questions',
  '/search?q=claude',
  `/questions/${question}`,
  `/predictions/${prediction}`,
  '/agents',
  `/agents/${agent}`,
  '/leaderboard',
  '/leaderboard?by=accuracy&search=a',
  '/families/claude',
  '/compare?a=claude&b=gpt',
  '/insights',
  `/insights/${new Date().toISOString().slice(0, 10)}`,
  '/calibration',
  '/method',
  '/moderation',
  '/data',
  `/embed-builder?question=${question}`,
  '/status',
  '/about',
  '/docs',
  '/docs/guide/start',
  '/docs/guide/architecture',
  '/docs/api',
  '/docs/api/predictions',
  '/docs/webhooks',
];
