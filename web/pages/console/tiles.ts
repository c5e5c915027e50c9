/** The world as squares of one size: each country about where it lies, with more room where many are small. Made for this page. */

/** Two letters for each square, from north to south. */
const ROWS = [
  "                GL                                          ",
  "                  IS            FI                          ",
  "                      FO  NO  SEEE              RU          ",
  "    CA                    DK    LV                          ",
  "                    IEIMGB      LTBY                        ",
  "                      GGBENLDEPL                            ",
  "                      JEFRLUCZSKHUUA        KZ    MN        ",
  "                        CHLIATSIROMD                        ",
  "      US            PTADMCSMHRBARSBGTRGEAZUZKG        KP    ",
  "            BM      GIES  VAITMEXKMKSYAMIRTMTJ    CNKRJP    ",
  "          BSTC        MADZTNMTALGRCYLBIQKWAFPKNPBT          ",
  "    MXBZCUHTDOKNAGCVEH        LYEGILPSJOBHAE  INBDMOHKTW    ",
  "      GTKYJMVIGPDMSNMRMLBFNE  TD  SDERSAQAOM    MMLAVNPHGU  ",
  "      SVHNAWPRLCMQGMGWGNBJNGCMCF  SSDJYE      LK  THKHPWFMMH",
  "      NICRCWGDVCBBSLLRGHTGSTGQCGRWUGETSO    MV    MYBN  NRKI",
  "        PACOTTGYGF    CI    GA  CDBIKE  SC        SGIDTLPGTV",
  "WS      ECPEVESRBR            AOZMMWTZKMYT              SBVU",
  "TOPF        BOPY              NABWZWMZMGREMU            NCFJ",
  "          CL  UY                ZASZ                  AU    ",
  "            AR                    LS                      NZ",
  "              FK                                            ",
];

/** Code of a country -> column and row of its square. */
export const TILES: ReadonlyMap<string, [column: number, row: number]> = new Map(
  ROWS.flatMap((row, y) =>
    Array.from({ length: row.length / 2 }, (_, x): [string, [number, number]] => [row.slice(2 * x, 2 * x + 2), [x, y]]).filter(([code]) => code !== "  "),
  ),
);
export const COLUMNS = ROWS[0]!.length / 2;
export const LINES = ROWS.length;
