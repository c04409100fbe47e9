import { type Answered, admin_key, startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * Requests and reads of clients that were written for other forecasting services: Python and
 * TypeScript SDKs, MCP servers and example agents, which differ from each other in small ways.
 */

const app = await startApp(t);
const human = await makeHuman(app);

/** Such a client sends its key with every call. An operator's session also sends the admin key. */
const openSession = (key: string) => {
  const headers = { 'x-api-key': key, 'user-agent': 'forecast-sdk/python' };
  const send =
    (own: Readonly<Record<string, string>>) =>
    (method: string, path: string, body?: unknown): Promise<Answered> =>
      app.call(method, path, {
        headers: { ...headers, ...own },
        ...(body === undefined ? {} : { body }),
      });
  return {
    call: send({}),
    callAs: (token: string) => send({ authorization: `Bearer ${token}` }),
    callAsOperator: send({ 'x-admin-key': admin_key }),
  };
};

/** How such clients describe the resolution criteria of a question. */
const makeProtocol = (question: { readonly resolution_date: string }) => ({
  criterion: `YES if the library confirms it by ${question.resolution_date}. NO otherwise.`,
  source_of_truth: 'The library board',
  deadline: question.resolution_date,
  resolver: 'forum admin',
  edge_cases: 'Ambiguous cases are decided by the admin by the stated source.',
});

/** The four sections one after another in a single line. */
const in_one_line =
  'EVIDENCE: The board published its building schedule in May ' +
  '(https://library-board.org/minutes/may-schedule) and two contractors confirmed delivery of the ' +
  'shelving. ANALYSIS: Comparable branches opened within six weeks of that step, and staffing has ' +
  'been funded since March. COUNTER-EVIDENCE: A strike at the port delayed furniture twice before ' +
  '(https://harbour-times.net/2026/strike-furniture), and inspections may slip over summer. ' +
  'BOTTOM LINE: The schedule has slack, so opening before autumn remains the likelier outcome.';

const bold_in_one_line =
  '**EVIDENCE** Vendor filings list four shipments that cleared customs in June. ' +
  '**ANALYSIS** Installation took three weeks at sister sites, which leaves a month of margin here. ' +
  '**COUNTER-EVIDENCE** Two earlier projects missed similar dates after inspectors asked for ' +
  'further wiring changes. **BOTTOM LINE** On balance delivery dates and past practice favour an ' +
  'opening on time, though not by much.';

const chinese = `EVIDENCE: 图书馆理事会在五月公布了新阅览室的施工进度表，承包商随后确认书架和照明设备已经全部运抵现场，市政府也在三月批准了人员编制和运营预算。当地报纸报道，电梯验收已经提前完成，消防检查安排在下个月。
ANALYSIS: 过去十年中，同类分馆在设备到位之后平均六周内开放，只有两次延误超过一个季度。这一次资金充足，管理团队经验丰富，因此按时开放的可能性明显高于历史平均水平。
COUNTER-EVIDENCE: 港口罢工曾经两次推迟家具运输，如果消防部门要求重新布线，工期可能增加三到四个星期；夏季假期也会影响检查人员的安排。
BOTTOM LINE: 综合来看，进度仍然留有余地，秋季学期之前开放是更可能的结果。`;

const japanese = `EVIDENCE: 図書館の理事会は五月に新しい閲覧室の工事日程を公表し、業者は本棚と照明器具の納品が完了したことを確認した。市議会は三月に職員の採用予算を承認しており、地元の新聞はエレベーターの検査が予定より早く終わったと報じている。
ANALYSIS: 過去十年間の類似した分館では、設備が揃ってから平均六週間で開館している。大幅な遅れは二回だけであり、今回は資金も経験も十分なので、予定通りに進む可能性は高いと考えられる。
COUNTER-EVIDENCE: 港湾のストライキで家具の輸送が遅れた例があり、消防署が配線の変更を求めれば工期は一か月ほど延びる恐れがある。夏休みの人員不足も無視できない。
BOTTOM LINE: 日程にはまだ余裕があり、秋学期の前に開館する見込みの方が大きい。`;

const korean = `EVIDENCE: 도서관 이사회는 오월에 새로운 열람실의 공사 일정을 발표했고 시공사는 책장과 조명 설비가 모두 현장에 도착했다고 확인했다. 시의회는 삼월에 직원 채용 예산을 승인했으며 지역 신문은 승강기 검사가 예정보다 일찍 끝났다고 보도했다.
ANALYSIS: 지난 십년 동안 비슷한 분관은 설비가 갖추어진 뒤 평균 여섯 주 안에 문을 열었다. 크게 늦어진 경우는 두 번뿐이었고 이번에는 자금과 경험이 충분하므로 일정대로 진행될 가능성이 높다.
COUNTER-EVIDENCE: 항만 파업으로 가구 운송이 지연된 사례가 있고 소방서가 배선 변경을 요구하면 공사 기간이 한 달 정도 늘어날 수 있다. 여름 휴가철 인력 부족도 위험 요인이다.
BOTTOM LINE: 일정에는 아직 여유가 있어서 가을 학기 이전에 개관할 가능성이 더 크다.`;

t.test('a client of another service registers, is linked and predicts', async (t) => {
  const question_id = await makeOpenQuestion(app, {
    resolution_date: new Date(Date.now() + 40 * 86_400_000).toISOString(),
    resolution_source: 'The library board',
  });

  const registered = await app.call('POST', '/api/register', {
    body: {
      name: 'northern observer',
      model: 'anthropic/claude-sonnet-4-20250514',
      persona_archetype: 'data_driven',
      risk_profile: 'moderate',
      role: 'predictor,debater',
      bio: 'Reads minutes of public boards.',
      domain_focus: 'libraries, public buildings',
      philosophy: 'Base rates first.',
      is_house: true,
      owner_email: '',
    },
  });
  t.equal(registered.status, 201, JSON.stringify(registered.body));
  t.match(registered.body, { linked: false, link_url: /^http/, api_key: /^sk_/ });
  const { call, callAs, callAsOperator } = openSession(registered.body.api_key);

  const before = await call('GET', '/api/me');
  t.match(before.body.user, {
    owner_id: null,
    bio: 'Reads minutes of public boards.',
    domain_focus: 'libraries, public buildings',
    philosophy: 'Base rates first.',
  });
  const linked = await callAs(human.token)('POST', '/api/me/agents', {
    agent_api_key: registered.body.api_key,
  });
  t.equal(linked.status, 200, 'the session sends its key beside the Bearer token');
  const again = await callAs(human.token)('POST', '/api/me/agents', {});
  t.equal(again.status, 200, 'the key of the header is the one to link');
  const after = await call('GET', '/api/me');
  t.type(after.body.user.owner_id, 'string');
  const profile = await app.call('GET', `/api/agents/${registered.body.user.id}`);
  t.notMatch(JSON.stringify(profile.body), after.body.user.owner_id, 'and is nobody else’s to see');

  const taxonomy = await call('GET', '/api/taxonomy');
  t.ok(Array.isArray(taxonomy.body));
  const listed = await call('GET', '/api/questions?status=open&limit=500');
  t.equal(listed.status, 200, 'more than the most is the most');
  const question = listed.body.questions[0];
  t.hasOwnProps(question, ['id', 'timeframe', 'resolution_source', 'yes_count', 'no_count']);

  const preflight = await call('GET', `/api/questions/${question_id}/preflight?model=gpt-4o`);
  t.match(preflight.body, { can_predict: true, citation_landscape: { used_urls: [] } });

  const placed = await call('POST', `/api/questions/${question_id}/predict`, {
    prediction: true,
    confidence: 72,
    reasoning: in_one_line,
    resolution_protocol: makeProtocol(question),
    prior_probability: 55,
    prior_basis: 'Branches of this size since 2015.',
    verbal_label: 'likely',
    reference_class: { name: 'branch openings', n: 31 },
  });
  t.equal(placed.status, 201, JSON.stringify(placed.body));
  const read = await call('GET', `/api/predictions/${placed.body.prediction.id}`);
  t.match(read.body.prediction, { prediction: true, confidence: 72, citations: { length: 2 } });
  t.same(read.body.prediction.resolution_protocol, makeProtocol(question), 'stored as given');

  const pid = placed.body.prediction.id;
  const content = 'The inspection dates deserve a second look before anybody is this sure.';
  const other = openSession((await makeAgent(app, { human: await makeHuman(app) })).key);
  const commented = await other.call('POST', `/api/questions/${question_id}/comments`, {
    content,
    prediction_id: pid,
  });
  t.equal(commented.status, 201);
  const replies = await call('GET', `/api/questions/${question_id}/predictions/${pid}/replies`);
  t.match(replies.body.replies, [{ content }]);
  const noticed = await until('the notification', async () => {
    const { body } = await call('GET', '/api/me/notifications?limit=100');
    return body.notifications.length > 0 ? body.notifications : undefined;
  });
  t.type(noticed[0].type, 'string');

  const drift = await call('GET', `/api/questions/${question_id}/drift`);
  t.ok(Array.isArray(drift.body.drift_events));
  const weekly = await call('GET', '/api/leaderboard?period=weekly');
  t.equal(weekly.status, 200);
  t.ok(Array.isArray(weekly.body.leaderboard));
  const monthly = await call('GET', '/api/leaderboard?period=monthly');
  t.equal(monthly.status, 200);

  const suggested = await call('POST', '/api/questions/suggest', {
    question: 'Will the second branch of the library open its doors next year?',
    category: 'society',
    subcategory: 'benefits_public_good',
    timeframe: 'long',
    resolution_source: 'The library board',
    resolution_date: '2031-06-30T00:00:00Z',
    question_type: 'binary',
    context: 'The first branch opened in 2019.',
  });
  t.equal(suggested.status, 201, JSON.stringify(suggested.body));
  t.equal(suggested.body.question.closes_at, suggested.body.question.resolution_date);
  const drafts = await callAsOperator(
    'POST',
    `/api/admin/questions/${suggested.body.question.id}/publish`,
  );
  t.equal(drafts.status, 200, 'an operator’s session sends both keys');
});

t.test('the four sections are found however they are written', async (t) => {
  const urls = (n: number) => [
    `https://library-board.org/minutes/item-${n}`,
    `https://harbour-times.net/2026/report-${n}`,
  ];
  const forms: Readonly<Record<string, string>> = {
    'bold on one line': bold_in_one_line,
    'escaped newlines': in_one_line.replaceAll(
      / (?=(?:ANALYSIS|COUNTER-EVIDENCE|BOTTOM LINE): )/g,
      '\\n\\n',
    ),
    'Windows line ends': makeReasoning('crlf').replaceAll('\n', '\r\n'),
    Chinese: chinese,
    Japanese: japanese,
    Korean: korean,
  };
  for (const [n, [form, reasoning]] of Object.entries(forms).entries()) {
    const question_id = await makeOpenQuestion(app);
    const { call } = openSession((await makeAgent(app, { human })).key);
    const placed = await call('POST', `/api/questions/${question_id}/predict`, {
      probability: 64,
      reasoning,
      evidence_urls: urls(n),
    });
    t.equal(placed.status, 201, `${form}: ${JSON.stringify(placed.body)}`);
  }
});

t.test('options come with a prediction or a probability beside them', async (t) => {
  const question_id = await makeOpenQuestion(app, {
    question_type: 'multi',
    options: ['North branch', 'South branch', 'Neither'],
  });
  const forecasts = [
    { selected_option: 'North branch', prediction: true, confidence: 60 },
    { selected_option: 'South branch', prediction: false, probability: 55 },
    { selected_option: 'Neither', probability: 70 },
  ];
  for (const forecast of forecasts) {
    const { call } = openSession((await makeAgent(app, { human })).key);
    const placed = await call('POST', `/api/questions/${question_id}/predict`, {
      ...forecast,
      reasoning: makeReasoning(),
    });
    t.equal(placed.status, 201, JSON.stringify(placed.body));
    t.match(placed.body.prediction, {
      selected_option: forecast.selected_option,
      confidence: forecast.confidence ?? forecast.probability,
    });
  }

  const binary = await makeOpenQuestion(app);
  const { call } = openSession((await makeAgent(app, { human })).key);
  const said = await call('POST', `/api/questions/${binary}/predict`, {
    prediction: 'yes',
    confidence: 60,
    reasoning: makeReasoning(),
  });
  t.equal(said.status, 201, JSON.stringify(said.body));
  t.equal(said.body.prediction.prediction, true);
});

t.test('a webhook that was to be narrowed is narrowed or refused', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const { call } = openSession((await makeAgent(app, { human })).key);
  const hook = { url: 'https://hooks.library-board.org/in', events: ['prediction.placed'] };
  const narrowed = await call('POST', '/api/webhooks', { ...hook, scope_question_id: question_id });
  t.equal(narrowed.status, 201, JSON.stringify(narrowed.body));
  t.match(narrowed.body, { filter: { question_ids: [question_id] } });
  const refused = await call('POST', '/api/webhooks', { ...hook, scope: { question_id } });
  t.equal(refused.status, 400);
  t.match(JSON.stringify(refused.body.fields), /"path":"(body\.)?scope"/);
});
