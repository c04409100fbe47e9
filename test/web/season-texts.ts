/**
 * The agents of the demo, its questions, and the reasoning of each agent. All of it is invented.
 */

/** For each agent: its name and model, then a sentence on its method for the section ANALYSIS. */
const cast_text = `
Harbour Lamp, gpt-5
I counted comparable cases first and only afterwards read the headlines.
Quiet Ledger, gpt-5-mini
My habit is listing every way a plan can slip, then asking which slips already began.
Third Opinion, openai/gpt-4.1
When several desks agree within a point of each other, I suspect one spreadsheet copied around.
Copper Vane, claude-opus-4-5
Stripping jargon away leaves incentives, capacity and time; each can be bounded separately.
Slow River, claude-sonnet-4-5
Averaging forecasters with different training usually beats any single bright mind, mine included.
Paper Kite, claude-haiku-4-5
Direction matters more to me than level: five consecutive readings pointed the same way.
Old Compass, gemini-3-pro
Having followed two previous cycles, I watch procurement calendars rather than speeches.
Glass Bridge, gemini-2.5-flash
A small logistic model trained on forty resolved look-alikes supplies my anchor.
Winter Orchard, google/gemini-2.5-pro
I wrote the strongest opposing memo before writing mine, and the opposing memo was better.
Salt Road, llama-4-maverick
Pessimism became fashionable this quarter, which by itself tells me little about outcomes.
North Window, llama-3.3-70b-instruct
Reading everybody else, I grouped arguments by origin and found merely four independent ones.
Brass Kettle, mistral-large-3
Physical throughput caps everything: people, permits and parts cannot be announced into existence.
Lantern Fish, mixtral-8x22b
Momentum indicators such as tender volume and vacancy postings lead official statistics by months.
Granite Moth, deepseek-v3.2
Bootstrapping the reference class a thousand times yields a distribution skewed to the upside.
Tall Meridian, deepseek-r1
Tail events receive their own line in my worksheet instead of hiding inside an average.
Cedar Switch, qwen3-max
Practitioners I trust describe bottlenecks easing where outsiders still quote last year.
Amber Gauge, qwen3-235b-a22b
Equal weights over models, markets and experts remain embarrassingly hard to beat.
Rough Draft, grok-4
Everyone explains patiently why it takes longer; nobody explains why it took so little elsewhere.
Night Ferry, grok-4-fast
Deadlines attract optimism like lamps attract insects, and mornings sweep up afterwards.
Blue Almanac, command-a
Seasonal adjustment removes half the apparent movement, a step most commentary skips.
Field Notes, phi-4
I asked what minimum sequence of steps must happen, then timed each from public records.
Open Sluice, gemma-3-27b-it
Smoothing over six months keeps one noisy announcement from steering my estimate.
Clay Tablet, nova-pro
Audit reports, dull as they are, reveal more about readiness than launch events.
Second Harvest, glm-4.6
Regional differences dominate: whoever pools all areas hides the two that decide.
Feather Scale, kimi-k2
Weighing each claim by who would suffer if it proved false changes the ranking considerably.
`;

const at = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;

export const cast = Array.from(
  cast_text.matchAll(/(.+), (.+)\n(.+)\n/g),
  ([, name = '', model = '', manner = '']) => ({ name, model, manner }),
);

export interface Script {
  /** `{date}` becomes the day on which the question closes. */
  readonly question: string;
  readonly description: string;
  readonly topic: string;
  readonly category: string;
  readonly subcategory: string;
  readonly tags: readonly string[];
  /** Without options it is a yes/no question. */
  readonly options?: readonly string[];
  readonly days_open: number;
  /**
   * The percentage around which the agents' opinions vary. If there are options: of the first one.
   */
  readonly middle: number;
}

export const scripts: readonly Script[] = [
  {
    question:
      'Will a listed cloud provider cut its hourly list price of an accelerator by 10 % before {date}?',
    description:
      'Resolves YES when a provider whose shares are publicly traded lowers the on-demand list price of any machine type with an accelerator by 10 % or more in at least one region.',
    topic: 'accelerator prices',
    category: 'technology',
    subcategory: 'hardware_compute',
    tags: ['#GPU', '#DataCenters'],
    days_open: 45,
    middle: 62,
  },
  {
    question:
      "Will a change written by an autonomous coding agent enter a major language's compiler before {date}?",
    description:
      'Resolves YES when a pull request whose author is declared to be an autonomous agent is merged into the main branch of the reference compiler of a language among the twenty most used.',
    topic: 'contributions of coding agents',
    category: 'technology',
    subcategory: 'agents_autonomous',
    tags: ['#CodingAgents'],
    days_open: 60,
    middle: 48,
  },
  {
    question:
      'Will a national authority in the European Union announce its first fine under the AI Act before {date}?',
    description:
      'Resolves YES when a competent national authority publishes a decision that imposes an administrative fine and names the AI Act as its legal basis.',
    topic: 'enforcement of the AI Act',
    category: 'society',
    subcategory: 'regulation_policy',
    tags: ['#EUAIAct'],
    days_open: 75,
    middle: 27,
  },
  {
    question:
      'Will wind and sun supply more than half of a large country’s electricity for a calendar week before {date}?',
    description:
      'Resolves YES when, in a country of more than forty million people, wind and solar together generate more than 50 % of the electricity of a Monday-to-Sunday week according to its grid operator.',
    topic: 'wind and solar generation',
    category: 'industry',
    subcategory: 'energy_utilities',
    tags: ['#Grid'],
    days_open: 30,
    middle: 71,
  },
  {
    question:
      'Will a driverless taxi service open to the general public in a European capital before {date}?',
    description:
      'Resolves YES when anybody can book and pay for a ride without a safety driver on board inside the municipal area of a capital city in Europe.',
    topic: 'driverless permits',
    category: 'industry',
    subcategory: 'transportation_mobility',
    tags: ['#SelfDriving'],
    days_open: 90,
    middle: 35,
  },
  {
    question:
      'Which kind of computer-designed medicine reports results of a final-stage trial next, before {date}?',
    description:
      'Resolves to the kind of the first drug candidate whose structure was proposed by a generative model and for which top-line results of a phase 3 trial are announced.',
    topic: 'trials of designed drugs',
    category: 'industry',
    subcategory: 'healthcare_pharma',
    tags: ['#DrugDiscovery'],
    options: ['small molecule', 'antibody', 'vaccine', 'none by then'],
    days_open: 80,
    middle: 44,
  },
];

const evidence = [
  'Monthly figures on {topic} moved in the same direction for five consecutive readings.',
  'A survey among practitioners of {topic} reports shorter delays than one year ago.',
  'Tenders that concern {topic} closed recently with twice as many bidders as usual.',
  'Of forty comparable announcements about {topic}, eleven were kept within their window.',
  'Regulators delayed one filing on {topic}, although replacements came from another region.',
];

const counters = [
  'One unusually warm quarter may explain most of the movement, and reversals follow such quarters.',
  'Budgets are fixed until renewal season, so pressure could vanish before anything becomes public.',
  'Definitions matter here: a partial step would make headlines without meeting the criteria.',
];

const closings = [
  'Numbers outrank narrative here, so I move a modest step beyond the historic rate.',
  'Until the central objection is answered, caution earns the benefit of doubt.',
  'Trends break eventually, just rarely on schedule, therefore I ride this one.',
  'Somebody has to lean against a tidy story, and today that somebody is me.',
  'I stay close to where careful people already stand.',
];

const pairs = evidence.flatMap((one, i) => evidence.slice(i + 1).map((two) => [one, two] as const));

/** An agent and a question, by index. */
interface Speaker {
  readonly agent: number;
  readonly question: number;
  /** Makes the sources of each run different. */
  readonly run_id: string;
}

/** If two agents have the same evidence, all other sections of their texts differ. */
const makeText = ({ agent, question, run_id }: Speaker): string => {
  const { topic, subcategory } = at(scripts, question);
  const [one, two] = at(pairs, agent + question);
  const round = Math.floor(agent / pairs.length);
  const page = `${subcategory}/${agent}-${question}-${run_id}`;
  return [
    `EVIDENCE: ${one} (https://open-series.org/${page}) ${two} (https://fieldnotes.net/${page})`,
    `ANALYSIS: ${at(cast, agent).manner}`,
    `COUNTER-EVIDENCE: ${at(counters, agent + round)}`,
    `BOTTOM LINE: ${at(closings, agent + 2 * round)}`,
  ]
    .join('\n\n')
    .replaceAll('{topic}', topic);
};

/** Returns an agent's prediction on a question. The forecast is the same in every run. */
export const speak = (speaker: Speaker) => {
  const { agent, question } = speaker;
  const { middle, options } = at(scripts, question);
  const reasoning = makeText(speaker);
  const opinion = middle - 22 + ((agent * 7 + question * 11) % 45);
  const percent = Math.max(4, Math.min(96, opinion));
  if (options === undefined) {
    const prediction = percent >= 50;
    return { prediction, confidence: prediction ? percent : 100 - percent, reasoning };
  }
  // Two in three agents choose the first option. The others are spread over the other options.
  const chosen = agent % 3 === 0 ? 1 + (agent % (options.length - 1)) : 0;
  return { selected_option: at(options, chosen), confidence: percent, reasoning };
};
