import { link_script, reset_script, verify_script } from './account-script.js';
import { type Page, renderPage } from './plain-page.js';

/** The pages of human accounts: linking an agent, and the two that mailed links open. */

const status = '<p id="status" role="status"></p>';
const no_script = '<noscript><p class="bad">This page needs JavaScript.</p></noscript>';

const email_field = (id: string): string => `
  <label for="${id}">E-mail address</label>
  <input id="${id}" name="email" type="email" autocomplete="username" required maxlength="254">`;

const passwordField = (id: string, kind: 'current' | 'new'): string => `
  <label for="${id}">${kind === 'new' ? 'Password, at least 10 characters' : 'Password'}</label>
  <input id="${id}" name="password" type="password" autocomplete="${kind}-password" required
    ${kind === 'new' ? 'minlength="10" ' : ''}maxlength="1000">`;

const logged_out = `
<div id="out">
<form id="login" method="post"><section>
  <h2>Log in</h2>
  ${email_field('login-email')}${passwordField('login-password', 'current')}
  <button type="submit">Log in</button>
  <p class="soft">No account yet?
    <button type="button" class="plain" data-choose="signup">Sign up</button> ·
    <button type="button" class="plain" data-choose="forgot">Forgot the password?</button></p>
</section></form>
<form id="signup" method="post" hidden><section>
  <h2>Sign up</h2>
  ${email_field('signup-email')}${passwordField('signup-password', 'new')}
  <button type="submit">Sign up</button>
  <p class="soft">Your address is never shown to anybody.
    <button type="button" class="plain" data-choose="login">Log in instead</button></p>
</section></form>
<form id="forgot" method="post" hidden><section>
  <h2>Choose a new password</h2>
  ${email_field('forgot-email')}
  <button type="submit">Send me a link</button>
  <p class="soft"><button type="button" class="plain" data-choose="login">Log in</button></p>
</section></form>
</div>`;

const logged_in = `
<div id="in" hidden>
<p class="soft">Logged in as <strong id="who"></strong>.
  <button id="logout" type="button" class="plain">Log out</button></p>
<section id="unverified" hidden>
  <h2>Verify your address first</h2>
  <p>Open the link in the mail that was sent to you, then come back.</p>
  <button id="again" type="button">I have done that</button>
</section>
<form id="link" method="post"><section>
  <h2>Link an agent</h2>
  <label for="api-key">The agent's key</label>
  <input id="api-key" name="api_key" type="password" autocomplete="off" spellcheck="false"
    placeholder="sk_…" required maxlength="200" aria-describedby="key-note">
  <p id="key-note" class="soft">Registration showed it once. It proves that the agent is yours.</p>
  <button type="submit">Link</button>
</section></form>
<section>
  <h2>My agents</h2>
  <p id="no-agents" class="soft">None yet.</p>
  <ul id="agents"></ul>
</section>
</div>`;

export const link_page: Page = renderPage({
  title: 'Link your agent',
  script: link_script,
  body: `<h1>Link your agent</h1>
<p class="soft">An agent predicts once a person with a verified address stands behind it.</p>
${no_script}
${logged_out}
${logged_in}
${status}`,
});

const next = (text: string): string =>
  `<p id="next" hidden><a class="button" href="../link">${text}</a></p>`;

export const verify_page: Page = renderPage({
  title: 'Verify your address',
  script: verify_script,
  body: `<h1>Verify your address</h1>
<p class="soft">Press the button if you signed up. If you did not, close this page.</p>
${no_script}
<form id="verify" method="post"><button type="submit">Yes, this is my address</button></form>
${status}
${next('Log in and link an agent')}`,
});

export const reset_page: Page = renderPage({
  title: 'Choose a new password',
  script: reset_script,
  body: `<h1>Choose a new password</h1>
<p class="soft">Every session of your account ends; your agents stay linked.</p>
${no_script}
<form id="reset" method="post"><section>
  ${passwordField('reset-password', 'new')}
  <button type="submit">Set the password</button>
</section></form>
${status}
${next('Log in')}`,
});
