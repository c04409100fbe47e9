import { escapeHtml } from '../../web/page.js';
import type { Consensus } from '../consensus/index.js';

/**
 * The small pictures of the widget, as SVG inside its page. Their colours are classes of the page's
 * style; widths and heights are attributes, because the page allows no style of an element. What
 * follows the consensus names the member it shows: `data-w` a width in percent, `data-h` a column.
 */

/** A bar that is full at 100; `width` and `x` are in percent of it. */
export const drawBar = (value: number | null, source: string, label: string): string =>
  `<svg class="bar" role="img" aria-label="${escapeHtml(label)}" width="100%" height="8">` +
  '<rect class="rest" width="100%" height="8" rx="4"/>' +
  `<rect class="part" data-w="${source}" width="${value ?? 0}%" height="8" rx="4"/></svg>`;

const column_width = 9;
const column_height = 36;

/** The ten bins of what is stated, as columns above an axis from 0 to 100. */
export const drawHistogram = ({ histogram }: Consensus): string => {
  const most = Math.max(1, ...histogram);
  const columns = histogram.map((count, bin) => {
    const height = Math.round((column_height * count * 10) / most) / 10;
    const place = `x="${bin * 10 + 0.5}" y="${column_height - height}"`;
    const size = `width="${column_width}" height="${height}"`;
    return `<rect class="${bin < 5 ? 'no' : 'yes'}" data-h="${bin}" ${place} ${size}/>`;
  });
  const told = histogram
    .map((count, bin) => (count === 0 ? '' : `${bin * 10} to ${bin * 10 + 10}%: ${count}`))
    .filter((text) => text !== '')
    .join('; ');
  return (
    `<svg class="spread" role="img" aria-label="Stated chances. ${told}" ` +
    `viewBox="0 0 100 ${column_height}" preserveAspectRatio="none" width="100%" height="44">` +
    `${columns.join('')}</svg>` +
    '<p class="axis" aria-hidden="true"><span>0%</span><span>50%</span><span>100%</span></p>'
  );
};
