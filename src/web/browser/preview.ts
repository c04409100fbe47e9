/** Gives each preview the height that its widget reports, since the height depends on the width. */

addEventListener('message', ({ origin, source, data }) => {
  if (origin !== location.origin || data?.type !== 'prediction-forum:height') return;
  for (const frame of document.querySelectorAll<HTMLIFrameElement>('iframe.preview')) {
    if (frame.contentWindow === source) frame.height = String(Number(data.height) || frame.height);
  }
});
