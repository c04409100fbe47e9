import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { verifyWebhook } from '../../../examples/webhooks/verify.js';
import { startApp } from '../../help/app.js';
import { readHtmlText } from '../../help/html.js';
import { project_root } from '../../help/own-stores.js';
import { makeSent, type Sent } from '../../help/signed-deliveries.js';
import { t } from '../../help/tap.js';

/** The page about webhooks, and its example programs, which run unchanged. */

const folder = path.join(project_root, 'examples', 'webhooks');
const files = ['verify.ts', 'verify.py', 'verify.go'] as const;

t.test('the page shows the examples and needs nothing from elsewhere', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const answer = await fetch(`${app.url}/docs/webhooks`);
  t.equal(answer.status, 200);
  t.match(answer.headers.get('content-type'), /^text\/html/);
  const html = await answer.text();
  const text = readHtmlText(html);
  for (const file of files) {
    const code = readFileSync(path.join(folder, file), 'utf8');
    t.ok(text.includes(code.trimEnd()), file);
  }
  t.notMatch(html, /<iframe\b|\bsrc="(?!\/)|@import|\burl\(/);
  t.match(answer.headers.get('content-security-policy'), /default-src 'none'/);
  t.match(html, /X-Svc-Signature-Next/);
  t.match(html, /5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h/);
});

t.test('TypeScript: what the forum signed passes, and nothing else', async (t) => {
  for (const { what, headers, body: text, secret, is_right } of makeSent()) {
    const verify = () => verifyWebhook(headers, Buffer.from(text), secret);
    if (is_right) t.equal(verify().event, 'question.created', what);
    else t.throws(verify, what);
  }
});

const makeFolder = (t: Test): string => {
  const made = mkdtempSync(path.join(os.tmpdir(), 'verify-'));
  t.teardown(() => rmSync(made, { recursive: true, force: true }));
  return made;
};

/**
 * Passes each delivery to the program as a line of JSON. For each, the program prints one line: the
 * event or an error.
 */
const answersOf = (command: string, args: readonly string[], cwd: string, all: readonly Sent[]) => {
  const input = all
    .map(({ headers, body: text, secret }) => JSON.stringify({ headers, body: text, secret }))
    .join('\n');
  const run = spawnSync(command, args, { cwd, input, encoding: 'utf8' });
  return { error: run.stderr, lines: run.stdout.trim().split('\n') };
};

const expected = (all: readonly Sent[]): string[] =>
  all.map(({ is_right }) => (is_right ? 'question.created' : 'error'));

const isThere = (command: string, arg: string): boolean => spawnSync(command, [arg]).status === 0;

const python_driver = `
import json, sys
from verify import verify_webhook
for line in sys.stdin:
    sent = json.loads(line)
    try:
        event = verify_webhook(sent["headers"], sent["body"].encode(), sent["secret"])
        print(event["event"])
    except ValueError:
        print("error")
`;

t.test(
  'Python: what the forum signed passes, and nothing else',
  { skip: isThere('python3', '--version') ? false : 'there is no python3' },
  async (t) => {
    const all = makeSent();
    const env_args = ['-B', '-X', 'utf8', '-c', python_driver];
    const { error, lines } = answersOf('python3', env_args, folder, all);
    t.equal(error, '');
    t.same(lines, expected(all));
  },
);

const go_driver = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"verify/webhooks"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var sent struct {
			Headers      map[string]string
			Body, Secret string
		}
		if err := json.Unmarshal(lines.Bytes(), &sent); err != nil {
			panic(err)
		}
		header := http.Header{}
		for name, value := range sent.Headers {
			header.Set(name, value)
		}
		event, err := webhooks.Verify(header, []byte(sent.Body), sent.Secret)
		if err != nil {
			fmt.Println("error")
		} else {
			fmt.Println(event.Event)
		}
	}
}
`;

t.test(
  'Go: what the forum signed passes, and nothing else',
  { skip: isThere('go', 'version') ? false : 'there is no go' },
  async (t) => {
    const made = makeFolder(t);
    mkdirSync(path.join(made, 'webhooks'));
    writeFileSync(path.join(made, 'go.mod'), 'module verify\n\ngo 1.21\n');
    writeFileSync(path.join(made, 'main.go'), go_driver);
    const code = readFileSync(path.join(folder, 'verify.go'));
    writeFileSync(path.join(made, 'webhooks', 'verify.go'), code);
    const all = makeSent();
    const { error, lines } = answersOf('go', ['run', '.'], made, all);
    t.equal(error, '');
    t.same(lines, expected(all));
  },
);
