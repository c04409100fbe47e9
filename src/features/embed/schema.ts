import { type Static, Type } from '@sinclair/typebox';
import { textEnum } from '../../http/schemas.js';
import { boards, periods } from '../leaderboards/rules.js';
import { whose } from '../leaderboards/schema.js';

/** API schemas for the widgets and oEmbed. */

export const views = ['card', 'chart', 'compact'] as const;
export type View = (typeof views)[number];
export const themes = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

/** Accepts any text, so that an unknown option never breaks a widget in an article. */
const oneOf = (names: readonly string[]) => {
  const names_text = names.join(', ');
  const description = `One of ${names_text}. Other values mean the default, usually ${names[0]}.`;
  return Type.Optional(Type.String({ maxLength: 100, description }));
};

export const embed_query = Type.Object({ view: oneOf(views), theme: oneOf(themes) });

const any_text = Type.Optional(Type.String({ maxLength: 100 }));

export const board_query = Type.Object({
  by: oneOf(boards),
  of: oneOf(whose),
  category: any_text,
  period: oneOf(periods),
  limit: Type.Optional(
    Type.String({
      maxLength: 100,
      description: 'Number of rows, 1 to 20. Larger values mean 20, any other value 10.',
    }),
  ),
  theme: oneOf(themes),
});

/** Accepts any id. Even a malformed id gets a page, which says that the question is unknown. */
export const embed_params = Type.Object({ id: Type.String() });

const pixels = Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 }));

export const oembed_query = Type.Object({
  url: Type.String({
    minLength: 1,
    maxLength: 2_048,
    description: 'Address of a widget, a question or a leaderboard of this service.',
  }),
  format: Type.Optional(textEnum(['json'] as const)),
  maxwidth: pixels,
  maxheight: pixels,
});

export type Room = Pick<Static<typeof oembed_query>, 'maxwidth' | 'maxheight'>;

export const oembed_schema = Type.Object({
  version: Type.Literal('1.0'),
  type: Type.Literal('rich'),
  provider_name: Type.String(),
  provider_url: Type.String(),
  title: Type.String(),
  cache_age: Type.Integer({ description: 'Seconds.' }),
  html: Type.String({ description: 'One iframe.' }),
  width: Type.Integer(),
  height: Type.Integer(),
  thumbnail_url: Type.Optional(Type.String({ description: 'The chart as PNG.' })),
  thumbnail_width: Type.Optional(Type.Integer()),
  thumbnail_height: Type.Optional(Type.Integer()),
});
export type Oembed = Static<typeof oembed_schema>;
