import { setTimeout as pause } from 'node:timers/promises';

/** Follows the log over server-sent events, and resumes with `Last-Event-ID`. */

async function* messagesOf(body) {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = block.split('\n').map((line) => /^(\w*):? ?(.*)$/.exec(line));
      const message = { event: '', data: '', id: '' };
      for (const [, name, value] of fields) if (name in message) message[name] += value;
      yield message;
    }
  }
}

export const followSse = async ({ url, topic = 'all', after, take }) => {
  let last = after;
  let connections = 0;
  let is_done = false;
  for (;;) {
    connections += 1;
    try {
      const answer = await fetch(`${url}/api/stream?topic=${topic}&after=${after}`, {
        headers: last > after ? { 'last-event-id': String(last) } : {},
        redirect: 'manual',
      });
      if (answer.status !== 200 && answer.status !== 429 && answer.status < 500) {
        throw new Error(`/api/stream is answered with ${answer.status}`, { cause: 'refused' });
      }
      for await (const { event, data, id } of messagesOf(answer.body)) {
        if (event === 'gap') throw new Error(`a gap: ${data}`, { cause: 'refused' });
        if (event !== '' || data === '') continue;
        const one = JSON.parse(data);
        if (Number(id) !== one.offset) throw new Error(`id ${id} of ${data}`, { cause: 'refused' });
        if (one.offset <= last) {
          throw new Error(`offset ${one.offset} comes after ${last}`, { cause: 'refused' });
        }
        last = one.offset;
        is_done = take(one) === true;
        if (is_done) break;
      }
    } catch (error) {
      if (error.cause === 'refused') throw error;
    }
    if (is_done) return { connections };
    await pause(50);
  }
};
