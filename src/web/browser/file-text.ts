/** A file that is chosen goes into the text area whose id `data-file-into` names. */

/** Other bytes than UTF-8 would go in as characters that stand for none. */
const readText = async (file: File): Promise<string | null> => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return null;
  }
};

for (const place of document.querySelectorAll<HTMLElement>('[data-file-into]')) {
  const area = document.getElementById(place.dataset['fileInto'] ?? '');
  const input = place.querySelector<HTMLInputElement>('input[type=file]');
  if (!(area instanceof HTMLTextAreaElement) || input === null) continue;
  place.hidden = false;
  input.addEventListener('change', async () => {
    const file = input.files?.[0];
    if (file === undefined) return;
    const text = await readText(file);
    if (text !== null) area.value = text;
    input.setCustomValidity(
      text === null ? 'This file is not text in UTF-8. Save it as UTF-8, and choose it again.' : '',
    );
    input.reportValidity();
  });
}
