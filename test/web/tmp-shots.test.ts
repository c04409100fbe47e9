import { startApp } from '../help/app.js';
import { openBrowser, findBarriers } from '../help/browser.js';
import { t } from '../help/tap.js';
import { openAs, findWide } from './visitors.js';
import { env, makeWorld } from './world.js';
const app = await startApp(t, { env });
const world = await makeWorld(app);
const browser = await openBrowser(t);
const visitor = await openAs(browser, app, '');
const { body } = await app.call('GET', '/api/agents?kind=imported&sort=points&limit=5');
const ids = body.agents.map((one: { id: string }) => one.id);
t.test('shots', async (t) => {
  for (const [name, address] of Object.entries({
    compare: '/compare?a=claude&b=gpt',
    agents: `/compare?a=${ids[0]}&b=${ids[1]}`,
    empty: '/compare',
    same: '/compare?a=gpt&b=gpt',
    calibration: '/calibration',
    family: '/families/claude',
    agent: `/agents/${ids[0]}`,
  })) {
    await visitor.page.goto(app.url + address, { waitUntil: 'load' });
    for (const colorScheme of ['light', 'dark'] as const) {
      await visitor.page.emulateMedia({ colorScheme });
      for (const width of [375, 768, 1280]) {
        await visitor.resize(width, 900);
        await visitor.page.screenshot({ path: `/tmp/h3-shots/${name}-${width}-${colorScheme}.png`, fullPage: true, animations: 'disabled' });
      }
      t.same(await findBarriers(visitor, colorScheme === 'dark' ? 'colours' : 'all'), [], address);
    }
    await visitor.resize(320, 700);
    t.same(await findWide(visitor), [], address);
  }
  t.ok(world);
});
