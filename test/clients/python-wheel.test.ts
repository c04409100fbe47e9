import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { startApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { readDocument, readFenced, readSection } from '../help/readme.js';
import { t } from '../help/tap.js';
import { runInTrixie, trixie, withoutTrixie } from '../help/trixie.js';

/**
 * The Python client as users get it: built with the tools of Debian 13, because those in Debian 12
 * are too old.
 */

const skip = withoutTrixie();

t.test('the wheel has its licence in its metadata, installs and loads', { skip }, async (t) => {
  const folder = mkdtempSync(path.join(trixie, 'tmp', 'client-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const ignored = ['tests', 'build', '__pycache__', '.mypy_cache'];
  cpSync(path.join(project_root, 'clients', 'python'), path.join(folder, 'source'), {
    recursive: true,
    filter: (name) => !ignored.includes(path.basename(name)) && !name.endsWith('.egg-info'),
  });
  const inside = `/tmp/${path.basename(folder)}`;

  await runInTrixie(
    `cd ${inside}/source && python3 -m build --no-isolation --outdir ${inside}/made`,
  );
  t.same((await runInTrixie(`ls ${inside}/made`)).trim().split('\n'), [
    'prediction_forum-0.1.0-py3-none-any.whl',
    'prediction_forum-0.1.0.tar.gz',
  ]);
  const in_sdist = await runInTrixie(`tar tzf ${inside}/made/*.tar.gz`);
  for (const name of ['LICENSE', 'README.md', 'prediction_forum/wire.py']) {
    t.match(in_sdist, `prediction_forum-0.1.0/${name}\n`);
  }

  const python = `${inside}/venv/bin/python`;
  await runInTrixie(`
    python3 -m venv --system-site-packages ${inside}/venv
    ${python} -m pip install --no-index --quiet ${inside}/made/*.whl
    ${python} -m pip check`);
  const said = await runInTrixie(`cd / && ${python} -c '
import importlib.metadata, json, prediction_forum
from prediction_forum import AsyncForum, Forum, Refused
found = importlib.metadata.distribution("prediction-forum")
print(json.dumps({
    "place": prediction_forum.__file__,
    "files": sorted(str(file) for file in found.files),
    "metadata": {name: found.metadata.get_all(name) for name in set(found.metadata)},
}))'`);
  const { place, files, metadata } = JSON.parse(said);
  t.match(place, `${inside}/venv/`);
  t.match(metadata, {
    Name: ['prediction-forum'],
    'License-Expression': ['Apache-2.0'],
    'License-File': ['LICENSE'],
    Classifier: ['Programming Language :: Python :: 3 :: Only', 'Typing :: Typed'],
  });
  for (const name of ['prediction_forum/py.typed', 'prediction_forum/wire.py']) {
    t.ok(files.includes(name), name);
  }
  t.ok(files.includes('prediction_forum-0.1.0.dist-info/licenses/LICENSE'));
});

t.test('the tutorial installs it from a forum', { skip }, async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const folder = mkdtempSync(path.join(trixie, 'tmp', 'agent-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const tutorial = readDocument('docs/tutorials/daily-agent.md');
  const [install = ''] = readFenced(readSection(tutorial, '## In Python'), 'bash');
  // Debian's packages instead of a registry.
  const settings = {
    BASE: app.url,
    PYTHONPATH: '/usr/lib/python3/dist-packages',
    PIP_NO_INDEX: '1',
    // The name of this variable means its opposite.
    PIP_NO_BUILD_ISOLATION: '0',
  };
  const given = Object.entries(settings).map(([name, value]) => `export ${name}=${value}`);
  const look = ".venv/bin/python -c 'import prediction_forum; print(prediction_forum.__file__)'";
  const steps = [`cd /tmp/${path.basename(folder)}`, ...given, install, look];
  const said = await runInTrixie(steps.join('\n'));
  t.match(said.trim().split('\n').at(-1), /\/\.venv\/lib\/.*\/prediction_forum\/__init__\.py$/);
});
