import { searchQuery } from '../../src/db/words.js';
import { openAdmin } from '../help/own-stores.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

const stores = await openStores(t);
const sql = openAdmin(stores.database_url);
t.teardown(() => sql.end());

const queryOf = async (text: string, options = {}): Promise<string> => {
  const [row] = await sql<{ query: string }[]>`
    select ${searchQuery(sql, text, options)}::text as query`;
  return row?.query ?? '';
};

t.test('a text becomes a query; the last word may be a beginning', async (t) => {
  for (const [text, query] of [
    ['nvidia', "'nvidia' | 'nvidia':*"],
    ['the will', "'the' & 'will':*"],
    ['will nvidia', "'nvidia' | 'nvidia':*"],
    ['gpt-5.5 beats', "'gpt5' & '5x5' & ( 'beat' | 'beats':* )"],
    ['bridge -old', "( 'bridg' | 'bridge' ) & !'old'"],
    ['“old bridge”', "'old' <-> 'bridg' | 'old' <-> 'bridge'"],
    ['ferries or 2027', "'ferri' | 'ferries' | '2027'"],
    ['東京', "'東京' | '東京':*"],
    ['-old', ''],
    ['"', ''],
    ['', ''],
  ] as const) {
    t.equal(await queryOf(text), query, text);
  }
});

t.test('a query that is stored has whole words', async (t) => {
  t.equal(await queryOf('Nvidia H100', { is_prefix: false }), "'nvidia' & 'h100'");
  const [row] = await sql<{ air: boolean; ai: boolean }[]>`
    select search_vector('An air show', '') @@ q as air, search_vector('A law on AI', '') @@ q as ai
    from (select ${searchQuery(sql, 'AI', { is_prefix: false })} as q) asked`;
  t.same(row, { air: false, ai: true });
});

t.test('both sides are folded in the same way', async (t) => {
  for (const [stored, text] of [
    ['Zürich', 'zurich'],
    ['Zu\u0308rich', 'ZÜRICH'],
    ['OpenAI’s', "openai's"],
    ['ＧＰＴ-４', 'gpt4'],
    ['Straße', 'strasse'],
    ['Łódź', 'lodz'],
    ['ΑΘΗΝΑΣ', 'αθηνας'],
    ['مُحَمَّد', 'محمد'],
    ['ガソリン', 'ｶﾞｿﾘﾝ'],
    ['엔비디아가', '엔비디아'],
  ] as const) {
    const [row] = await sql<{ found: boolean }[]>`
      select search_vector(${stored}, '') @@ ${searchQuery(sql, text)} as found`;
    t.equal(row?.found, true, text);
  }
});
