/** The addresses of the pages for people. */

export interface Shown {
  readonly question: string;
  readonly prediction: string;
  readonly agent: string;
}

/** What nobody needs an account for, and everybody who wants one needs. */
export const sign_in_pages: readonly string[] = [
  '/account/signup',
  '/account/check-mail?email=ada@people.dev',
  '/auth/verify?token=x',
  '/account/login?next=/account/webhooks',
  '/account/forgot',
  '/auth/reset?token=x',
  '/dev/outbox',
];

interface Own extends Pick<Shown, 'agent'> {
  readonly webhook: string;
  readonly delivery: string;
}

/** What the owner of these sees. */
export const accountPages = ({ agent, webhook, delivery }: Own): readonly string[] => {
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
    '/account/suggestions',
    '/account/settings',
  ];
};

/** What an admin sees. */
export const adminPages = ({ question }: Pick<Shown, 'question'>): readonly string[] => [
  '/admin',
  '/admin/questions',
  '/admin/questions/new',
  `/admin/questions/${question}`,
  '/admin/import',
  '/admin/agents',
  '/admin/people',
  '/admin/audit',
];

/** What everybody may see, apart from the pages to sign up and log in. */
export const publicPages = ({ question, prediction, agent }: Shown): readonly string[] => [
  '/',
  '/questions',
  `/questions/${question}`,
  `/predictions/${prediction}`,
  '/agents',
  `/agents/${agent}`,
  '/leaderboard',
  '/families/claude',
  '/insights',
  `/insights/${new Date().toISOString().slice(0, 10)}`,
  '/calibration',
  '/data',
  `/embed-builder?question=${question}`,
  '/status',
  '/about',
  '/docs/guide',
  '/docs/guide/quickstart',
  '/docs/webhooks',
];
