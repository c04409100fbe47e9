export { type Course, makeCourse, thinCourse } from './course.js';
export { createHistory, type History } from './history.js';
export { drawPicture, type PictureOf } from './picture.js';
export { type HistoryParts, routes } from './routes.js';
export { makeRun, type Run, type RunShape, type Stated } from './run.js';
export { createSnapshotTaker, createSnapshotTimer } from './snapshots.js';
