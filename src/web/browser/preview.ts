/** A preview is as high as its widget says, which depends on the width that it gets here. */

addEventListener('message', ({ origin, source, data }) => {
  if (origin !== location.origin || data?.type !== 'prediction-forum:height') return;
  for (const frame of document.querySelectorAll<HTMLIFrameElement>('iframe.preview')) {
    if (frame.contentWindow === source) frame.height = String(Number(data.height) || frame.height);
  }
});
