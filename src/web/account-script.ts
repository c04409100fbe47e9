import { code_words, field_words, for_programs, other_words } from './account-words.js';

/**
 * Browser code of the account pages, as text: it runs on people's machines and not in the service.
 * The session token stays in this tab's `sessionStorage` and is sent in a header, never as a
 * cookie; tokens of mailed links leave the address bar at once. Everything that comes from the
 * service is set as text, never as HTML.
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
const fieldWords = ${JSON.stringify(field_words)};
const codeWords = ${JSON.stringify(code_words)};
const otherWords = ${JSON.stringify(other_words)};
const forPrograms = new RegExp(${JSON.stringify(for_programs)});
const wordsFor = ({ code, error, fields }) => {
  const known = (fields && fields[0] && fieldWords[fields[0].path]) || codeWords[code];
  return known || (!error || forPrograms.test(error) ? otherWords : error);
};
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
const onSubmit = (id, act) => at(id).addEventListener('submit', async (event) => {
  event.preventDefault();
  const buttons = event.target.querySelectorAll('button');
  for (const button of buttons) button.disabled = true;
  say('', true);
  try { await act(event.target); } catch (error) { say(error.message, false); }
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
onSubmit('login', async (form) => {
  const answer = await call('POST', '/api/auth/login',
    { email: form.email.value, password: form.password.value });
  sessionStorage.setItem('pf_token', answer.token);
  form.reset();
  await refresh();
});
onSubmit('signup', async (form) => {
  const answer = await call('POST', '/api/auth/signup',
    { email: form.email.value, password: form.password.value });
  form.reset();
  choose('login');
  say(answer.message, true);
});
onSubmit('forgot', async (form) => {
  const answer = await call('POST', '/api/auth/forgot', { email: form.email.value });
  choose('login');
  say(answer.message, true);
});
onSubmit('link', async (form) => {
  const answer = await call('POST', '/api/me/agents', { api_key: form.api_key.value.trim() });
  form.reset();
  await refresh();
  say(answer.message, true);
});
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

export const verify_script = `${shared_script}
const token = takeToken();
onSubmit('verify', async () => {
  const answer = await call('POST', '/api/auth/verify', { token });
  show('verify', false);
  show('next', true);
  say(answer.message, true);
});
`;

export const reset_script = `${shared_script}
const token = takeToken();
onSubmit('reset', async (form) => {
  const answer = await call('POST', '/api/auth/reset', { token, password: form.password.value });
  sessionStorage.removeItem('pf_token');
  show('reset', false);
  show('next', true);
  say(answer.message, true);
});
`;
