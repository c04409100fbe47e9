import net from 'node:net';

/**
 * Sockets for connections of Postgres over which very much is read. By itself every read gets 64 KB
 * of memory of its own, however little arrives, and a message that is cut by its end is copied with
 * all that follows it: clearing that away cost more CPU than the reading (bench `export`). Here one
 * piece of memory is read into again and again, and `data` has whole messages only, which are good
 * until the listener returns: whoever asks for raw rows copies what is to be kept.
 *
 *   memory:  ··· done ···│ whole messages ──▶ data │ begin of a message │ free ──▶ next read
 */

const memory_bytes = 262_144;
/** Less free memory than this is not worth a read. */
const least_read_bytes = 32_768;
/** A message is a letter, and a length that counts itself. */
const head_bytes = 5;

export interface BulkAddress {
  /** Of a unix socket; it comes before host and port. */
  readonly path?: string | undefined;
  readonly host: string;
  readonly port: number;
}

class Incoming {
  #memory = Buffer.allocUnsafeSlow(memory_bytes);
  #from = 0;
  #to = 0;

  /** Where the next read goes; a message longer than all memory gets more. */
  free(): Buffer {
    if (this.#memory.byteLength - this.#to < least_read_bytes) {
      const waiting = this.#to - this.#from;
      const is_small = this.#memory.byteLength - waiting < least_read_bytes;
      const to = is_small ? Buffer.allocUnsafeSlow(2 * this.#memory.byteLength) : this.#memory;
      this.#memory.copy(to, 0, this.#from, this.#to);
      this.#memory = to;
      this.#from = 0;
      this.#to = waiting;
    }
    return this.#memory.subarray(this.#to);
  }

  /** The messages that are whole now that so many bytes were read. */
  take(bytes: number): Buffer {
    this.#to += bytes;
    const from = this.#from;
    while (this.#to - this.#from >= head_bytes) {
      const end = this.#from + 1 + this.#memory.readUInt32BE(this.#from + 1);
      if (end > this.#to) break;
      this.#from = end;
    }
    const whole = this.#memory.subarray(from, this.#from);
    if (this.#from === this.#to) {
      this.#from = 0;
      this.#to = 0;
    }
    return whole;
  }
}

export const connectBulkSocket = ({ path, host, port }: BulkAddress): net.Socket => {
  const incoming = new Incoming();
  const onread: net.OnReadOpts = {
    buffer: () => incoming.free(),
    callback(bytes) {
      const whole = incoming.take(bytes);
      if (whole.byteLength > 0) socket.emit('data', whole);
      return true;
    },
  };
  const address = path === undefined ? { host, port } : { path };
  const socket = net.connect({ ...address, onread });
  return socket;
};
