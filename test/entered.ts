import { t } from 'tap';
import { enteredByPrediction } from './help/entered.js';

/** `npm run walk`: the files and functions that one prediction enters, from socket to commit. */

t.test('one prediction', async (t) => {
  const files = await enteredByPrediction(t);
  for (const { file, functions } of files) t.comment(`${file}: ${functions.join(', ')}`);
  const folders = new Set(files.map(({ file }) => file.slice(0, file.lastIndexOf('/'))));
  const functions = files.reduce((sum, { functions }) => sum + functions.length, 0);
  t.comment(`${files.length} files in ${folders.size} folders, ${functions} functions`);
});
