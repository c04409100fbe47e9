/** Keyboard navigation of lists: `j` next row, `k` previous row, `o` or Enter opens the row. */

const links = (): HTMLAnchorElement[] => [
  ...document.querySelectorAll<HTMLAnchorElement>('#rows a.title'),
];

document.addEventListener('keydown', (event) => {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey || !['j', 'k', 'o'].includes(key)) return;
  if (target instanceof HTMLElement && target.closest('input, textarea, select') !== null) return;
  const all = links();
  const at = all.indexOf(document.activeElement as HTMLAnchorElement);
  if (key === 'o') {
    all[at]?.click();
    return;
  }
  const next = key === 'j' ? at + 1 : Math.max(0, at - 1);
  all[Math.min(next, all.length - 1)]?.focus();
});
