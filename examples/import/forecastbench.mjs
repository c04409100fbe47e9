/**
 * Converts question sets in the shape of ForecastBench into lines for `npm run import`:
 *
 *   node examples/import/forecastbench.mjs SET.ndjson [--forecasts] [--resolutions] > season.ndjson
 *
 * Each line has the members `source, source_id, question, background, resolution_criteria, url,
 * opens_at, closes_at` and becomes a question. With `--forecasts` it adds one forecast of the
 * crowd, from `frozen_at` and `crowd_probability`. With `--resolutions` it adds the outcome, from
 * `resolved_to` and `resolved_on`. Adapt this example to other sources: `npm run import -- --help`
 * describes the input of the import.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

/** A question's subject is the first with a word in the question, or else in the background. */
const subjects = Object.entries({
  existential_risk: 'extinction|superintelligence|AI takeover|bioweapons?|asteroids?',
  robotics_physical: 'robots?|robotics|humanoids?|Optimus',
  transportation_mobility: 'self-driving|driverless|robotaxis?|Waymo|airlines?|Boeing|Airbus',
  safety_alignment: 'AI safety|AI risk|alignment|interpretability|jailbreak\\p{L}*',
  regulation_policy:
    'AI Act|regulat\\p{L}*|legislation|antitrust|tariffs?|Supreme Court|ban|banned',
  models_architectures: 'AI models?|LLMs?|AGI|GPT|ChatGPT|Claude|Gemini|Grok|DeepSeek|Arena',
  hardware_compute: 'GPUs?|Nvidia|TSMC|semiconductors?|chips?|Moore|Intel|AMD',
  bigtech_ecosystems: 'OpenAI|Anthropic|Google|Alphabet|Apple|Microsoft|Amazon|Meta|Tesla|Twitter',
  startups_investment: 'IPO|startups?|valuation|SpaceX|Starship|unicorn',
  finance_banking: 'Fed|ECB|inflation|CPI|GDP|recession|S&P 500|stocks?|Bitcoin|BTC|rates?|bank',
  energy_utilities: 'oil|gas|OPEC|nuclear|solar|wind|electricity|fusion|reactors?',
  environment_sustainability:
    'climate|temperatures?|hurricanes?|emissions|earthquakes?|CO2|warming',
  healthcare_pharma: 'FDA|vaccin\\p{L}*|measles|flu|COVID|pandemic|virus|drugs?|cancer|health',
  agriculture_foodtech: 'crops?|wheat|corn|food|farm\\p{L}*|egg prices',
  cybersecurity_defense: 'cyber\\p{L}*|hack\\p{L}*|ransomware|data breach',
  geopolitics_security:
    'Russia|Ukraine|Israel|Gaza|Iran|China|Taiwan|NATO|war|ceasefire|nuclear weapons?|military|troops',
  law_legaltech: 'court|trial|lawsuits?|convicted|indicted|sentenced|pardon',
  public_sector: 'elections?|president|prime minister|senate|congress|party|mayor|Trump|government',
  media_entertainment:
    'movie|film|album|Oscars?|Grammy|box office|NBA|NFL|MLB|WNBA|league|cup|championship|playoffs|games?',
  jobs_future_work: 'unemployment|jobs|layoffs|workers|strike',
  research_academia: 'Nobel|theorem|mathematic\\p{L}*|paper|scientists?|NASA|telescope',
}).map(([subcategory, words]) => ({
  subcategory,
  pattern: new RegExp(`(?<![\\p{L}\\p{N}])(?:${words})(?![\\p{L}\\p{N}])`, 'iu'),
}));

const subjectOf = ({ question, background }) => {
  for (const text of [question, background]) {
    const found = subjects.find(({ pattern }) => pattern.test(text ?? ''));
    if (found !== undefined) return { subcategory: found.subcategory };
  }
  return { category: 'society' };
};

const entities = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', '#39': "'" };

/** Converts HTML to text. Keeps link URLs and paragraph breaks, drops other tags. */
const plain = (html) =>
  html
    .replace(/<a\b[^>]*\bhref="([^"]*)"[^>]*>(.*?)<\/a>/gis, '$2 ($1)')
    .replace(/<br\s*\/?>|<\/(?:p|div|li|h[1-6]|tr)>/gi, '\n')
    .replace(/<li\b[^>]*>/gi, '- ')
    .replace(/<\/?[a-z][^>]*>/gi, '')
    .replace(/&(#?\w+);/g, (whole, name) => entities[name.toLowerCase()] ?? whole)
    .replace(/[ \t]*\r?\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();

function* convert(record, { forecasts, resolutions }) {
  const { source, source_id, question, background = '', resolution_criteria = '' } = record;
  const { opens_at, closes_at, url, crowd_probability, resolved_to } = record;
  yield {
    source,
    source_id,
    question: plain(question),
    ...subjectOf(record),
    opens_at,
    closes_at,
    description: plain(`${background ?? ''}\n\n${resolution_criteria ?? ''}`),
    resolution_source: source,
    resolution_url: url,
  };
  if (forecasts && typeof crowd_probability === 'number') {
    const crowd = { agent: `Crowd of ${source}`, model: 'crowd', forecast_at: record.frozen_at };
    const stated = { probability: crowd_probability, scale: 'fraction' };
    yield { type: 'forecast', source, source_id, ...crowd, ...stated };
  }
  if (resolutions && typeof resolved_to === 'number') {
    const resolution_note = `Resolved on ${record.resolved_on} by ${source}.`;
    yield { type: 'resolution', source, source_id, resolved_to, resolution_note };
  }
}

const flag = { type: 'boolean', default: false };
const options = { forecasts: flag, resolutions: flag };
const { values, positionals } = parseArgs({ allowPositionals: true, options });
for await (const line of createInterface({ input: createReadStream(positionals[0] ?? 0) })) {
  if (line.trim() === '') continue;
  for (const made of convert(JSON.parse(line), values)) console.log(JSON.stringify(made));
}
