export { createNews, queued_news } from './news.js';
