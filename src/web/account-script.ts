/**
 * Browser code of the account pages, as text: it runs on people's machines and not in the service.
 * The session token stays in this tab's `sessionStorage` and is sent in a header, never as a
 * cookie; tokens of mailed links leave the address bar at once. Everything that comes from the
 * service is set as text, never as HTML. Its own sentences are for programs too: those that name a
 * part of a request are said in other words, by the first field that is wrong or by the code.
 */
export const shared_script = `
'use strict';
const root = location.pathname.replace(/\\/(?:link|auth\\/(?:verify|reset))\\/?$/, '');
const at = (id) => document.getElementById(id);
const show = (id, visible) => { at(id).hidden = !visible; };
const say = (text, good) => {
  at('status').textContent = text;
  at('status').className = good ? 'good' : 'bad';
};
const words = {
  'body.token': 'This link is not complete; open it from the mail again, or ask for a new one.',
  'body.email': 'Enter an e-mail address, such as ada@example.org.',
  'body.password': 'Choose a password of 10 to 1,000 characters.',
  'body.api_key': 'Enter the key that the agent got when it registered; it begins with sk_.',
  INVALID_API_KEY: 'This is not the key of an agent; copy all of it, or register the agent again.',
  INVALID_TOKEN: 'You are not logged in any more; log in again.',
  MISSING_AUTH: 'You are not logged in any more; log in again.',
  HUMANS_ONLY: 'You are not logged in any more; log in again.',
  RATE_LIMITED: 'Too many tries; wait a minute, then try again.',
  INTERNAL: 'Something went wrong on our side; try again.',
};
const other_words = 'That did not work; load the page again and try once more.';
const for_programs =
  /body|query|params|header|[/]api[/]|X-[A-Z]|[A-Z]+-Key|Bearer|JSON|json|request|route|method/;
const wordsFor = ({ code, error, fields }) => words[fields?.[0]?.path] || words[code] ||
  (!error || for_programs.test(error) ? other_words : error);
const call = async (method, path, body) => {
  const headers = {};
  const token = sessionStorage.getItem('pf_token');
  if (token && !path.startsWith('/api/auth/log')) headers.Authorization = 'Bearer ' + token;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(root + path, { method, headers, credentials: 'omit',
      body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error('The service cannot be reached; try again.');
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const error = new Error(wordsFor(answer));
  error.code = answer.code;
  throw error;
};
const post = (id, path, done, more) => at(id).addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = event.target;
  const buttons = form.querySelectorAll('button');
  const body = { ...more };
  for (const name of ['email', 'password', 'api_key']) {
    if (form[name]) body[name] = name === 'api_key' ? form[name].value.trim() : form[name].value;
  }
  for (const button of buttons) button.disabled = true;
  say('', true);
  try {
    const answer = await call('POST', path, body);
    form.reset();
    await done(answer);
    if (answer.message) say(answer.message, true);
  } catch (error) { say(error.message, false); }
  for (const button of buttons) button.disabled = false;
});
const takeToken = () => {
  const token = new URLSearchParams(location.search).get('token') || '';
  history.replaceState(null, '', location.pathname);
  return token;
};
`;

export const link_script = `${shared_script}
let user = null;
const forget = () => { sessionStorage.removeItem('pf_token'); user = null; };
const agentRow = (agent) => {
  const item = document.createElement('li');
  const text = document.createElement('span');
  text.textContent = agent.name + ' · ' + agent.model + ' · ' + agent.points + ' points';
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'plain';
  button.textContent = 'Unlink';
  button.setAttribute('aria-label', 'Unlink ' + agent.name);
  button.addEventListener('click', async () => {
    try {
      const answer = await call('DELETE', '/api/me/agents/' + agent.id);
      await refresh();
      say(answer.message, true);
    } catch (error) { say(error.message, false); }
  });
  item.append(text, button);
  return item;
};
const listAgents = async () => {
  const answer = await call('GET', '/api/me/agents?limit=100');
  at('agents').replaceChildren(...answer.agents.map(agentRow));
  show('no-agents', answer.total === 0);
};
const refresh = async () => {
  if (sessionStorage.getItem('pf_token')) {
    try { user = (await call('GET', '/api/auth/session')).user; } catch (error) {
      if (error.code !== 'INVALID_TOKEN') throw error;
      forget();
    }
  }
  show('out', user === null);
  show('in', user !== null);
  if (user === null) return;
  at('who').textContent = user.email;
  show('unverified', !user.email_verified);
  show('link', user.email_verified);
  await listAgents();
};
const choose = (name) => {
  for (const id of ['login', 'signup', 'forgot']) show(id, id === name);
  say('', true);
  const first = at(name).querySelector('input');
  if (first) first.focus();
};
for (const button of document.querySelectorAll('[data-choose]')) {
  button.addEventListener('click', () => choose(button.dataset.choose));
}
post('login', '/api/auth/login', (answer) => {
  sessionStorage.setItem('pf_token', answer.token);
  return refresh();
});
post('signup', '/api/auth/signup', () => choose('login'));
post('forgot', '/api/auth/forgot', () => choose('login'));
post('link', '/api/me/agents', refresh);
at('again').addEventListener('click', () => refresh().catch((error) => say(error.message, false)));
at('logout').addEventListener('click', async () => {
  const token = sessionStorage.getItem('pf_token');
  forget();
  await fetch(root + '/api/auth/logout',
    { method: 'POST', headers: { Authorization: 'Bearer ' + token } }).catch(() => undefined);
  await refresh();
  say('Logged out.', true);
});
refresh().catch((error) => say(error.message, false));
`;

const finish = (form: 'verify' | 'reset'): string => `
const finish = () => {
  show('${form}', false);
  show('next', true);
};
post('${form}', '/api/auth/${form}', finish, { token: takeToken() });
`;

export const verify_script = shared_script + finish('verify');
export const reset_script = shared_script + finish('reset');
