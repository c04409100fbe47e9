export { act } from './acting.js';
