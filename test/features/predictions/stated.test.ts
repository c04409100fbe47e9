import fc from 'fast-check';
import t from 'tap';
import {
  distributionOf,
  readStated,
  type Stated,
  type StatedBody,
} from '../../../src/features/predictions/stated.js';

const binary = { question_type: 'binary', options: [] } as const;
const multi = { question_type: 'multi', options: ['Red', 'Green', 'Blue', 'Café'] } as const;

const yesNo = (body: StatedBody) => readStated(body, binary);
const choose = (body: StatedBody) => readStated(body, multi);
const stated = (result: ReturnType<typeof readStated>): Stated => {
  if ('failures' in result) throw new Error(JSON.stringify(result.failures));
  return result;
};
const codes = (result: ReturnType<typeof readStated>): string[] =>
  'failures' in result ? result.failures.map(({ code, path }) => `${code} ${path}`) : [];
const messages = (result: ReturnType<typeof readStated>): string =>
  'failures' in result ? result.failures.map(({ message }) => message).join(' | ') : '';

t.test('a side with a confidence and a probability of YES are the same statement', async (t) => {
  for (let percent = 0; percent <= 100; percent += 1) {
    if (percent === 1) continue;
    const yes = stated(yesNo({ prediction: true, confidence: percent }));
    t.match(yes, { prediction: true, probability: percent, confidence: percent });
    const no = stated(yesNo({ prediction: false, confidence: percent }));
    t.match(no, { prediction: false, probability: 100 - percent, confidence: percent });
    const chance = stated(yesNo({ probability: percent }));
    t.match(chance, { prediction: percent >= 50, probability: percent });
    t.equal(chance.confidence, Math.max(percent, 100 - percent));
    t.same(distributionOf(chance, 2), { units: [percent, 100 - percent], whole: 100 });
    t.same([chance.selected_option, chance.probabilities], [null, null]);
  }
});

t.test('a fraction strictly between 0 and 1 is a percentage, rounded to a whole one', async (t) => {
  const cases: [number, number][] = [
    [0.85, 85],
    [0.01, 1],
    [0.5, 50],
    [0.004, 0],
    [0.005, 1],
    [0.285, 29],
    [0.996, 100],
    [0.994, 99],
    [0.29, 29],
    [0.57, 57],
    [Number.MIN_VALUE, 0],
    [1 - Number.EPSILON, 100],
  ];
  for (const [given, percent] of cases) {
    t.equal(stated(yesNo({ probability: given })).probability, percent, `${given}`);
    t.equal(stated(yesNo({ prediction: true, confidence: given })).confidence, percent);
    t.equal(stated(choose({ selected_option: 'Red', confidence: given })).confidence, percent);
  }
  for (let percent = 1; percent < 100; percent += 1) {
    t.equal(stated(yesNo({ probability: percent / 100 })).probability, percent);
  }
});

t.test('exactly 1 is refused as ambiguous, with what to send instead', async (t) => {
  for (const [result, field] of [
    [yesNo({ probability: 1 }), 'probability'],
    [yesNo({ prediction: true, confidence: 1 }), 'confidence'],
    [choose({ selected_option: 'Red', confidence: 1 }), 'confidence'],
  ] as const) {
    t.same(codes(result), [`INVALID_CONFIDENCE body.${field}`]);
    t.match(messages(result), /1 is ambiguous: send 100 for certain, or 0\.01 for one percent/);
  }
});

t.test('a confidence that is no whole number from 0 to 100 is refused', async (t) => {
  for (const wrong of [101, -1, 85.5, 1.5, 100.1, -0.5, 1e9, Number.NaN, Infinity]) {
    t.same(codes(yesNo({ probability: wrong })), ['INVALID_CONFIDENCE body.probability']);
    t.same(codes(yesNo({ prediction: true, confidence: wrong })), [
      'INVALID_CONFIDENCE body.confidence',
    ]);
  }
  t.same(codes(yesNo({ prediction: true, confidence: 101, probability: -1 })), [
    'INVALID_CONFIDENCE body.probability',
    'INVALID_CONFIDENCE body.confidence',
  ]);
  t.ok(Object.is(stated(yesNo({ probability: -0 })).probability, 0));
});

t.test('forms given together must agree', async (t) => {
  const agreeing: StatedBody[] = [
    { prediction: true, confidence: 80, probability: 80 },
    { prediction: false, confidence: 80, probability: 20 },
    { prediction: true, probability: 50 },
    { prediction: false, probability: 50 },
    { prediction: true, confidence: 0.8, probability: 80 },
    { prediction: true, confidence: 30, probability: 30 },
    { confidence: 80, probability: 20 },
  ];
  for (const body of agreeing) t.same(codes(yesNo(body)), [], JSON.stringify(body));
  const contradicting: StatedBody[] = [
    { prediction: true, confidence: 80, probability: 20 },
    { prediction: false, confidence: 80, probability: 80 },
    { prediction: true, probability: 49 },
    { prediction: false, probability: 51 },
    { confidence: 20, probability: 20 },
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
  t.match(messages(choose({ probability: 80 })), /has options: send selected_option/);
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
  t.match(messages(both), /confidence 80 contradicts probability 70; send one/);
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
    t.equal(probability, /yes|true/i.test(prediction) ? 80 : 20, prediction);
  }
});

t.test('an option with a confidence spreads the rest evenly, exactly', async (t) => {
  const green = stated(choose({ selected_option: ' Green ', confidence: 50 }));
  t.match(green, { prediction: null, probability: null, selected_option: 1, confidence: 50 });
  t.equal(green.probabilities, null);
  t.same(distributionOf(green, multi.options.length), { units: [50, 150, 50, 50], whole: 300 });
  const cafe = stated(choose({ selected_option: 'Cafe\u0301', confidence: 100 }));
  t.equal(cafe.selected_option, 3, 'options are compared in NFC');
});

t.test('an unknown option is refused and the known ones are named', async (t) => {
  for (const option of ['Purple', 'red', '', '0', '__proto__', 'constructor']) {
    const result = choose({ selected_option: option, confidence: 80 });
    t.same(codes(result), ['INVALID_OPTION body.selected_option'], option);
    t.match(messages(result), /the options are Red, Green, Blue, Café/);
    const probabilities = JSON.parse(`{"Red":50,${JSON.stringify(option)}:50}`);
    t.same(codes(choose({ probabilities })), ['INVALID_OPTION body.probabilities'], option);
  }
  t.same(codes(choose({ selected_option: 'Purple', confidence: 101 })), [
    'INVALID_OPTION body.selected_option',
    'INVALID_CONFIDENCE body.confidence',
  ]);
});

t.test('probabilities sum to 100 or to 1 and come out as whole percents', async (t) => {
  const cases: [Record<string, number>, number[]][] = [
    [{ Red: 70, Green: 20, Blue: 10 }, [70, 20, 10, 0]],
    [{ Red: 0.7, Green: 0.2, Blue: 0.1 }, [70, 20, 10, 0]],
    [{ Blue: 100 }, [0, 0, 100, 0]],
    [{ Blue: 1 }, [0, 0, 100, 0]],
    [{ Red: 1, Green: 99 }, [1, 99, 0, 0]],
    [{ Red: 33.3, Green: 33.3, Blue: 33.3 }, [34, 33, 33, 0]],
    [{ Red: 0.333, Green: 0.333, Blue: 0.334 }, [33, 33, 34, 0]],
    [{ Red: 0.29, Green: 0.57, Blue: 0.14 }, [29, 57, 14, 0]],
    [{ Red: 25.5, Green: 24.5, Blue: 25, Café: 25 }, [26, 24, 25, 25]],
    [{ Red: 50.4, Green: 49.1 }, [51, 49, 0, 0]],
    [{ Red: 50.5, Green: 50 }, [50, 50, 0, 0]],
    [{ Red: 0.5, Green: 0.495 }, [50, 50, 0, 0]],
  ];
  for (const [probabilities, percents] of cases) {
    const result = stated(choose({ probabilities }));
    t.same(result.probabilities, percents, JSON.stringify(probabilities));
    t.same(distributionOf(result, multi.options.length), { units: percents, whole: 100 });
    t.equal(result.confidence, Math.max(...percents));
    t.equal(result.selected_option, percents.indexOf(Math.max(...percents)));
  }
  for (const wrong of [
    {},
    { Red: 0 },
    { Red: 99.4 },
    { Red: 60, Green: 40.6 },
    { Red: 0.994 },
    { Red: 0.6, Green: 0.406 },
    { Red: 2 },
  ]) {
    const result = choose({ probabilities: wrong });
    t.same(codes(result), ['INVALID_CONFIDENCE body.probabilities'], JSON.stringify(wrong));
    t.match(messages(result), /sum to [\d.]+, not to 100 or 1/);
  }
  for (const wrong of [{ Red: -10, Green: 110 }, { Red: Number.NaN }, { Red: 101 }]) {
    t.match(messages(choose({ probabilities: wrong })), /between 0 and 100/);
  }
  t.match(messages(choose({ probabilities: { Red: 50, ' Red': 50 } })), /named twice/);
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
});

t.test('percents sum to exactly 100 and stay within one of what was stated', async () => {
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
      const { probabilities: percents } = stated(
        readStated({ probabilities }, { question_type: 'multi', options }),
      );
      const total = percents!.reduce((a, b) => a + b, 0);
      return (
        total === 100 &&
        percents!.every(
          (p, i) => Number.isInteger(p) && Math.abs(p - (shares[i]! / whole) * 100) < 1 + 1e-6,
        )
      );
    }),
    { numRuns: 2_000 },
  );
});
