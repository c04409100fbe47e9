/** A file that is chosen goes into the text area whose id `data-file-into` names. */

for (const place of document.querySelectorAll<HTMLElement>('[data-file-into]')) {
  const area = document.getElementById(place.dataset['fileInto'] ?? '');
  const input = place.querySelector<HTMLInputElement>('input[type=file]');
  if (!(area instanceof HTMLTextAreaElement) || input === null) continue;
  place.hidden = false;
  input.addEventListener('change', async () => {
    const file = input.files?.[0];
    if (file !== undefined) area.value = await file.text();
  });
}
