/** Sets the theme that the reader chose, before anything is drawn. `site.ts` stores the choice. */

try {
  document.documentElement.dataset['theme'] = localStorage.getItem('theme') ?? '';
} catch {
  // The browser keeps nothing for this site.
}
