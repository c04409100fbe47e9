/**
 * What the reference does beyond what it shows: a search that hides what does not fit, and buttons
 * that copy. Without script both are absent and everything else is there.
 */
export const docs_script = `
const field = document.querySelector('.search');
const told = document.querySelector('.found');
const ops = [...document.querySelectorAll('.op')].map((node) => ({
  node, link: document.querySelector('.side a[href="#' + node.id + '"]'),
  text: (node.dataset.words || '').toLowerCase(),
}));
const groups = [...document.querySelectorAll('section[data-group]')];
const heads = [...document.querySelectorAll('.side [data-head]')];
const search = () => {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const { node, link, text } of ops) {
    const fits = words.every((word) => text.includes(word));
    count += fits ? 1 : 0;
    node.hidden = !fits;
    if (link) link.parentNode.hidden = !fits;
  }
  for (const part of [...groups, ...heads]) {
    const some = part.querySelector('.op:not([hidden]), li:not([hidden])');
    part.hidden = words.length > 0 && some === null;
  }
  told.textContent = words.length === 0 ? '' : count + ' found';
};
if (field && ops.length > 0) {
  field.hidden = false;
  field.addEventListener('input', search);
  document.addEventListener('keydown', (event) => {
    const typing = /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
    } else if (event.key === 'Escape' && document.activeElement === field) {
      field.value = '';
      search();
    } else if (event.key === 'Enter' && document.activeElement === field) {
      const first = ops.find(({ node }) => !node.hidden);
      if (first) { location.hash = first.node.id; field.blur(); }
    }
  });
}
if (navigator.clipboard) {
  for (const button of document.querySelectorAll('figcaption button')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.closest('figure').querySelector('pre').textContent);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
  }
}
`;
