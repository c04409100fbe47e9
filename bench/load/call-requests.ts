import { makePairs, type PairOptions, type PairRequest } from './pairs.js';
import { predictRequest } from './predict-requests.js';
import { textFrame } from './ws-wire.js';

const toFrame = ({ path, body }: PairRequest, k: number): Buffer =>
  textFrame(JSON.stringify({ op: 'call', id: k, route: `POST ${path}`, body }));

/** The requests of the bench `predict` as calls, for the sockets of their agents. */
export const makeRequests = (options: PairOptions): readonly Buffer[] =>
  makePairs(options, predictRequest, toFrame);
