/** Copies the chosen file into the text area whose id is in `data-file-into`. */

/** Returns null if the file is not UTF-8; otherwise the text would get replacement characters. */
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
      text === null ? 'This file is not UTF-8 text. Save it as UTF-8 and choose it again.' : '',
    );
    input.reportValidity();
  });
}
