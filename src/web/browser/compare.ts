/** Counts the selected rows of a leaderboard. At most two can be selected. */

const texts = ['Select two forecasters first.', 'Select one more.', 'Two selected.'];

for (const form of document.querySelectorAll<HTMLFormElement>('form[data-compare]')) {
  const boxes = [...form.querySelectorAll<HTMLInputElement>('input[name="row"]')];
  const place = form.querySelector('[role="status"]');
  const show = (): void => {
    const selected = boxes.filter(({ checked }) => checked).length;
    for (const box of boxes) box.disabled = selected >= texts.length - 1 && !box.checked;
    form.toggleAttribute('data-selected', selected > 0);
    if (place !== null) place.textContent = texts[selected] ?? '';
  };
  form.addEventListener('change', show);
  show();
}

export {};
