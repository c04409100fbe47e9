import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import {
  distributionOf,
  type ForecastColumns,
} from '../../../src/features/predictions/distribution.js';
import {
  dataOf,
  type ForecastBody,
  readForecastInput,
  showForecastInput,
  understoodScale,
} from '../../../src/features/predictions/forecast-input.js';
import { no_range } from '../../help/number.js';
import { t } from '../../help/tap.js';

const binary = { ...no_range, question_type: 'binary', options: [] } as const;
const multi = {
  ...no_range,
  question_type: 'multi',
  options: ['Red', 'Green', 'Blue', 'Café'],
} as const;

const yesNo = (body: ForecastBody) => readForecastInput(body, binary);
const choose = (body: ForecastBody) => readForecastInput(body, multi);
const stated = (result: ReturnType<typeof readForecastInput>): ForecastColumns => {
  if ('failures' in result) throw new Error(JSON.stringify(result.failures));
  return result;
};
const codes = (result: ReturnType<typeof readForecastInput>): string[] =>
  'failures' in result ? result.failures.map(({ code, path }) => `${code} ${path}`) : [];
const messages = (result: ReturnType<typeof readForecastInput>): string =>
  'failures' in result ? result.failures.map(({ message }) => message).join(' | ') : '';

/** The number that a client writes for this many basis points, in percent. */
const written = (bp: number): number =>
  Number(`${Math.floor(bp / 100)}.${String(bp % 100).padStart(2, '0')}`);

t.test('a side with a confidence and a probability of YES are the same statement', async (t) => {
  for (let bp = 0; bp <= 10_000; bp += 1) {
    const given = { scale: 'percent', confidence: written(bp) } as const;
    const yes = stated(yesNo({ ...given, prediction: true }));
    const no = stated(yesNo({ ...given, prediction: false }));
    const chance = stated(yesNo({ probability: written(bp), scale: 'percent' }));
    const wanted = { selected_option: null, probabilities: null, cdf: null };
    const most = Math.max(bp, 10_000 - bp);
    const is_right =
      isDeepStrictEqual(yes, { ...wanted, prediction: true, probability: bp, confidence: bp }) &&
      isDeepStrictEqual(no, {
        ...wanted,
        prediction: false,
        probability: 10_000 - bp,
        confidence: bp,
      }) &&
      isDeepStrictEqual(chance, {
        ...wanted,
        prediction: bp >= 5_000,
        probability: bp,
        confidence: most,
      }) &&
      isDeepStrictEqual(distributionOf(chance, 2), { units: [bp, 10_000 - bp], whole: 10_000 });
    if (!is_right) t.fail(`${written(bp)} %`);
  }
});

t.test(
  'without a scale a number strictly between 0 and 1 is a fraction, others percent',
  async (t) => {
    const cases: [number, number][] = [
      [0.85, 8_500],
      [0.004, 40],
      [0.01, 100],
      [0.9999, 9_999],
      [0.285, 2_850],
      [0.00285, 29],
      [0.00005, 1],
      [0.000049, 0],
      [Number.MIN_VALUE, 0],
      [0.999_998, 10_000],
      [1.000_002, 100],
      [-1e-7, 0],
      [100.000_1, 10_000],
      [0, 0],
      [-0, 0],
      [1.01, 101],
      [1.5, 150],
      [85, 8_500],
      [85.5, 8_550],
      [99.99, 9_999],
      [99.994, 9_999],
      [99.995, 10_000],
      [33.335, 3_334],
      [33.3349, 3_333],
      [100, 10_000],
    ];
    for (const [given, bp] of cases) {
      t.ok(Object.is(stated(yesNo({ probability: given })).probability, bp), `${given}`);
      t.equal(stated(yesNo({ prediction: true, confidence: given })).confidence, bp);
      t.equal(stated(choose({ selected_option: 'Red', confidence: given })).confidence, bp);
    }
  },
);

t.test('a number that noise alone keeps apart from 1 is as ambiguous as 1', async (t) => {
  for (const given of [1, 1 - 1e-6, 1 + 1e-6, 1 - 2 ** -53, 1 + 2 ** -52, 0.999_999_5]) {
    for (const result of [
      yesNo({ probability: given }),
      yesNo({ prediction: true, confidence: given }),
      choose({ selected_option: 'Red', confidence: given }),
    ]) {
      t.match(codes(result)[0], /^INVALID_CONFIDENCE/, `${given}`);
      t.match(messages(result), /is ambiguous\. Send 100 for certain/);
    }
    t.equal(stated(yesNo({ probability: given, scale: 'fraction' })).probability, 10_000);
    t.equal(stated(yesNo({ probability: given, scale: 'percent' })).probability, 100);
  }
});

t.test('probabilities as a list in the order of the options, with noise below 0', async (t) => {
  const wanted = stated(choose({ probabilities: { Red: 70, Green: 20, Blue: 10 } }));
  t.strictSame(stated(choose({ probabilities: [70, 20, 10, 0] })), wanted);
  t.strictSame(stated(choose({ probabilities: [0.7, 0.2, 0.1, -1e-17] })), wanted);
  t.match(messages(choose({ probabilities: [70, 30] })), /Send 4 probabilities/);
  const negative = choose({ probabilities: [70, 20, 11, -1] });
  t.same(codes(negative), ['INVALID_CONFIDENCE body.probabilities']);
});

t.test('the scale that was understood is that of the numbers that count', async (t) => {
  t.equal(understoodScale({ probability: 0.8 }), 'fraction');
  t.equal(understoodScale({ prediction: true, confidence: 80 }), 'percent');
  t.equal(understoodScale({ probabilities: [0.7, 0.3, 0, 0] }), 'fraction');
  t.equal(understoodScale({ continuous_cdf: [0, 0.5, 1], confidence: 50 }), 'fraction');
  t.equal(understoodScale({ quantiles: [1, 2, 3], confidence: 50 }), null, 'values have none');
  t.equal(understoodScale({ probability: 0.8, scale: 'percent' }), 'percent');
});

t.test('an answer is the same forecast when it is sent back, whatever was stated', async (t) => {
  const sent = (body: ForecastBody, question: typeof binary | typeof multi) => {
    const first = stated(readForecastInput(body, question));
    const back = JSON.parse(JSON.stringify(showForecastInput(first, question)));
    const event = JSON.parse(JSON.stringify(dataOf(first, question)));
    return [back, event].every((one) => isDeepStrictEqual(readForecastInput(one, question), first));
  };
  for (let bp = 0; bp <= 10_000; bp += 1) {
    const probability = bp / 100;
    const is_same =
      sent({ probability, scale: 'percent' }, binary) &&
      sent({ selected_option: 'Blue', confidence: probability, scale: 'percent' }, multi) &&
      sent({ probabilities: [probability, 100 - probability, 0, 0], scale: 'percent' }, multi);
    if (!is_same) t.fail(`${bp}`);
  }
});

t.test('a scale leaves nothing to guess, for every number beside it', async (t) => {
  const cases: ['percent' | 'fraction', number, number][] = [
    ['percent', 0.5, 50],
    ['percent', 0.004, 0],
    ['percent', 0.005, 1],
    ['percent', 0.4, 40],
    ['percent', 1, 100],
    ['percent', 100, 10_000],
    ['percent', 0, 0],
    ['fraction', 0.5, 5_000],
    ['fraction', 1, 10_000],
    ['fraction', 0, 0],
    ['fraction', 0.00285, 29],
  ];
  for (const [scale, given, bp] of cases) {
    t.equal(stated(yesNo({ probability: given, scale })).probability, bp, `${given} ${scale}`);
    t.equal(stated(choose({ selected_option: 'Red', confidence: given, scale })).confidence, bp);
  }
  const wrong: ['percent' | 'fraction', number, RegExp][] = [
    ['percent', 100.001, /must be from 0 to 100, because scale is percent/],
    ['percent', -0.001, /must be from 0 to 100, because scale is percent/],
    ['fraction', 1.001, /must be from 0 to 1, because scale is fraction/],
    ['fraction', 85, /must be from 0 to 1, because scale is fraction/],
    ['fraction', -0.001, /must be from 0 to 1, because scale is fraction/],
  ];
  for (const [scale, given, why] of wrong) {
    const result = yesNo({ probability: given, scale });
    t.same(codes(result), ['INVALID_CONFIDENCE body.probability']);
    t.match(messages(result), why);
  }
  t.equal(stated(yesNo({ probability: 0.5, scale: null })).probability, 5_000, 'null is none');
});

t.test('exactly 1 is refused as ambiguous, with what to send instead', async (t) => {
  for (const [result, field] of [
    [yesNo({ probability: 1 }), 'probability'],
    [yesNo({ prediction: true, confidence: 1 }), 'confidence'],
    [choose({ selected_option: 'Red', confidence: 1 }), 'confidence'],
  ] as const) {
    t.same(codes(result), [`INVALID_CONFIDENCE body.${field}`]);
    t.match(messages(result), /1 is ambiguous\. Send 100 for certain or 0\.01 for one percent/);
  }
});

t.test('a confidence that is no number from 0 to 100 is refused', async (t) => {
  for (const wrong of [101, -1, 100.004, -0.0001, -0.5, 1e9, Number.NaN, Infinity]) {
    t.same(codes(yesNo({ probability: wrong })), ['INVALID_CONFIDENCE body.probability']);
    t.same(codes(yesNo({ prediction: true, confidence: wrong })), [
      'INVALID_CONFIDENCE body.confidence',
    ]);
  }
  t.same(codes(yesNo({ prediction: true, confidence: 101, probability: -1 })), [
    'INVALID_CONFIDENCE body.probability',
    'INVALID_CONFIDENCE body.confidence',
  ]);
});

t.test('forms given together must agree', async (t) => {
  const agreeing: ForecastBody[] = [
    { prediction: true, confidence: 80, probability: 80 },
    { prediction: false, confidence: 80, probability: 20 },
    { prediction: true, probability: 50 },
    { prediction: false, probability: 50 },
    { prediction: true, confidence: 0.8, probability: 80 },
    { prediction: true, confidence: 30, probability: 30 },
    { confidence: 80, probability: 20 },
    { prediction: false, confidence: 99.6, probability: 0.4, scale: 'percent' },
    // Rounded separately, these are 33.34 and 66.67.
    { prediction: false, confidence: 33.335, probability: 66.665 },
    { prediction: null, confidence: null, probability: 50, selected_option: null },
  ];
  for (const body of agreeing) t.same(codes(yesNo(body)), [], JSON.stringify(body));
  const contradicting: ForecastBody[] = [
    { prediction: true, confidence: 80, probability: 20 },
    { prediction: false, confidence: 80, probability: 80 },
    { prediction: true, probability: 49 },
    { prediction: false, probability: 51 },
    { confidence: 20, probability: 20 },
    { prediction: true, confidence: 80.02, probability: 80 },
  ];
  for (const body of contradicting) {
    t.same(codes(yesNo(body)), ['INVALID_CONFIDENCE body.probability'], JSON.stringify(body));
    t.match(messages(yesNo(body)), /contradicts/);
  }
});

t.test('what is missing, or belongs to the other kind of question, is refused', async (t) => {
  for (const [result, code] of [
    [yesNo({}), 'INVALID_OPTION body.prediction'],
    [yesNo({ confidence: 80 }), 'INVALID_OPTION body.prediction'],
    [yesNo({ prediction: true }), 'INVALID_CONFIDENCE body.confidence'],
    [choose({}), 'INVALID_OPTION body.selected_option'],
    [choose({ confidence: 80 }), 'INVALID_OPTION body.selected_option'],
    [choose({ selected_option: 'Red' }), 'INVALID_CONFIDENCE body.confidence'],
    [yesNo({ selected_option: 'Red', confidence: 80 }), 'INVALID_OPTION body.selected_option'],
    [yesNo({ probabilities: { Red: 100 } }), 'INVALID_OPTION body.probabilities'],
    [choose({ prediction: true, confidence: 80 }), 'INVALID_OPTION body.prediction'],
    [choose({ probability: 80 }), 'INVALID_OPTION body.probability'],
  ] as const) {
    t.same(codes(result), [code]);
  }
  t.match(messages(choose({ probability: 80 })), /has options\. Send selected_option/);
});

t.test('beside an option a side says nothing, and a probability is the confidence', async (t) => {
  const red = stated(choose({ selected_option: 'Red', confidence: 80 }));
  for (const body of [
    { prediction: true, confidence: 80 },
    { prediction: false, confidence: 80 },
    { prediction: 'yes', probability: 80 },
    { probability: 0.8 },
    { probability: 80, confidence: 80 },
  ]) {
    t.same(stated(choose({ selected_option: 'Red', ...body })), red, JSON.stringify(body));
  }
  t.same(codes(choose({ selected_option: 'Red', prediction: true })), [
    'INVALID_CONFIDENCE body.confidence',
  ]);
  t.same(codes(choose({ selected_option: 'Red', probability: 101 })), [
    'INVALID_CONFIDENCE body.probability',
  ]);
  const both = choose({ selected_option: 'Red', probability: 70, confidence: 80 });
  t.match(messages(both), /confidence 80 contradicts probability 70\. Send only one/);
});

t.test('a side may be written as a text', async (t) => {
  for (const prediction of [
    'yes',
    'YES',
    'Yes',
    'true',
    'True',
    'no',
    'NO',
    'No',
    'false',
    'False',
  ]) {
    const { probability } = stated(yesNo({ prediction, confidence: 80 }));
    t.equal(probability, /yes|true/i.test(prediction) ? 8_000 : 2_000, prediction);
  }
});

t.test('an option with a confidence spreads the rest evenly, exactly', async (t) => {
  const green = stated(choose({ selected_option: ' Green ', confidence: 50.01 }));
  t.match(green, { prediction: null, probability: null, selected_option: 1, confidence: 5_001 });
  t.equal(green.probabilities, null);
  t.same(distributionOf(green, multi.options.length), {
    units: [4_999, 15_003, 4_999, 4_999],
    whole: 30_000,
  });
  const cafe = stated(choose({ selected_option: 'Cafe\u0301', confidence: 100 }));
  t.equal(cafe.selected_option, 3, 'options are compared in NFC');
});

t.test('an unknown option is refused and the known ones are named', async (t) => {
  for (const option of ['Purple', 'ready', '', '0', '__proto__', 'constructor']) {
    const result = choose({ selected_option: option, confidence: 80 });
    t.same(codes(result), ['INVALID_OPTION body.selected_option'], option);
    t.match(messages(result), /The options are Red, Green, Blue, Café/);
    const probabilities = JSON.parse(`{"Red":50,${JSON.stringify(option)}:50}`);
    t.same(codes(choose({ probabilities })), ['INVALID_OPTION body.probabilities'], option);
  }
  t.same(codes(choose({ selected_option: 'Purple', confidence: 101 })), [
    'INVALID_OPTION body.selected_option',
    'INVALID_CONFIDENCE body.confidence',
  ]);
});

t.test('probabilities sum to 100 or to 1, and come out as basis points', async (t) => {
  const cases: [Record<string, number>, number[]][] = [
    [{ Red: 70, Green: 20, Blue: 10 }, [7_000, 2_000, 1_000, 0]],
    [{ Red: 0.7, Green: 0.2, Blue: 0.1 }, [7_000, 2_000, 1_000, 0]],
    [{ Red: 99.2, Green: 0.4, Blue: 0.4 }, [9_920, 40, 40, 0]],
    [{ Blue: 100 }, [0, 0, 10_000, 0]],
    [{ Blue: 1 }, [0, 0, 10_000, 0]],
    [{ Red: 1, Green: 99 }, [100, 9_900, 0, 0]],
    [{ Red: 0.29, Green: 0.57, Blue: 0.14 }, [2_900, 5_700, 1_400, 0]],
    [{ Red: 25.5, Green: 24.5, Blue: 25, Café: 25 }, [2_550, 2_450, 2_500, 2_500]],
    // One basis point is left over. The first of the options with equal remainders gets it.
    [{ Red: 33.3, Green: 33.3, Blue: 33.3 }, [3_334, 3_333, 3_333, 0]],
    [{ Red: 0.33333, Green: 0.33333, Blue: 0.33334 }, [3_333, 3_333, 3_334, 0]],
    // Two basis points are left over: three options have 1428.57…, and the last has 5714.28….
    [{ Red: 14.2, Green: 14.2, Blue: 14.2, Café: 56.8 }, [1_429, 1_429, 1_428, 5_714]],
    // A sum may be off by a hundredth: 99 and 101, 0.99 and 1.01.
    [{ Red: 49.5, Green: 49.5 }, [5_000, 5_000, 0, 0]],
    [{ Red: 75.75, Green: 25.25 }, [7_500, 2_500, 0, 0]],
    [{ Red: 101 }, [10_000, 0, 0, 0]],
    [{ Red: 0.495, Green: 0.495 }, [5_000, 5_000, 0, 0]],
    [{ Red: 0.7575, Green: 0.2525 }, [7_500, 2_500, 0, 0]],
  ];
  for (const [probabilities, shares] of cases) {
    const result = stated(choose({ probabilities }));
    t.same(result.probabilities, shares, JSON.stringify(probabilities));
    t.same(distributionOf(result, multi.options.length), { units: shares, whole: 10_000 });
    t.equal(result.confidence, Math.max(...shares));
    t.equal(result.selected_option, shares.indexOf(Math.max(...shares)));
  }
  for (const wrong of [
    {},
    { Red: 0 },
    { Red: 98.99 },
    { Red: 60, Green: 41.01 },
    { Red: 0.9899 },
    { Red: 0.6, Green: 0.4101 },
    { Red: 2 },
    { Red: 0.5 },
  ]) {
    const result = choose({ probabilities: wrong });
    t.same(codes(result), ['INVALID_CONFIDENCE body.probabilities'], JSON.stringify(wrong));
    t.match(messages(result), /sum to [\d.]+\. They must sum to 100 or 1\./);
  }
  for (const wrong of [{ Red: -10, Green: 110 }, { Red: Number.NaN }, { Red: 101.5 }]) {
    t.match(messages(choose({ probabilities: wrong })), /between 0 and 100/);
  }
  t.match(messages(choose({ probabilities: { Red: 50, ' Red': 50 } })), /named twice/);
  const scaled = (scale: 'percent' | 'fraction', Red: number) =>
    choose({ probabilities: { Red }, scale });
  t.match(messages(scaled('percent', 1)), /sum to 1\. They must sum to 100\./);
  t.match(messages(scaled('fraction', 100)), /sum to 100\. They must sum to 1\./);
  t.match(stated(scaled('percent', 100)), { probabilities: [10_000, 0, 0, 0] });
  t.match(stated(scaled('fraction', 1)), { probabilities: [10_000, 0, 0, 0] });
});

t.test('probabilities and an option given together must agree', async (t) => {
  const probabilities = { Red: 20, Green: 40, Blue: 40 };
  t.equal(stated(choose({ probabilities })).selected_option, 1, 'the first of the greatest');
  const blue = choose({ probabilities, selected_option: 'Blue', confidence: 40 });
  t.equal(stated(blue).selected_option, 2);
  t.same(codes(choose({ probabilities, selected_option: 'Red' })), [
    'INVALID_OPTION body.selected_option',
  ]);
  t.same(codes(choose({ probabilities, confidence: 41 })), ['INVALID_CONFIDENCE body.confidence']);
  const thirds = { Red: 33.333, Green: 33.333, Blue: 33.333 };
  t.match(stated(choose({ probabilities: thirds, selected_option: 'Blue', confidence: 33.333 })), {
    selected_option: 2,
    confidence: 3_333,
    probabilities: [3_334, 3_333, 3_333, 0],
  });
});

t.test('shares sum to exactly 10,000 and stay within one of what was stated', async () => {
  const weights = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
    minLength: 2,
    maxLength: 10,
  });
  fc.assert(
    fc.property(weights, fc.constantFrom(1, 100), (given, whole) => {
      const sum = given.reduce((a, b) => a + b, 0);
      fc.pre(sum > 1e-6);
      const options = given.map((_, i) => `o${i}`);
      const shares = given.map((value) => (value / sum) * whole);
      const probabilities = Object.fromEntries(shares.map((share, i) => [`o${i}`, share]));
      const { probabilities: kept } = stated(
        readForecastInput({ probabilities }, { ...multi, options }),
      );
      const total = kept!.reduce((a, b) => a + b, 0);
      return (
        total === 10_000 &&
        kept!.every(
          (p, i) => Number.isInteger(p) && Math.abs(p - (shares[i]! / whole) * 10_000) < 1 + 1e-6,
        )
      );
    }),
    { numRuns: 2_000 },
  );
});
