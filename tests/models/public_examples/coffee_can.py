"""A can of coffee beans; after CoffeeCan of TLA+'s public examples, whose fairness is WF(Next)."""

from stagewright.spec import (
    ANY,
    Bool,
    Eventually,
    Fairness,
    LeadsTo,
    Machine,
    NumberVar,
    action,
    eventually,
    fairness,
    final,
    initially,
    leads_to,
    liveness,
    number,
    require,
)

BEANS = 8


class CoffeeCan(Machine):
    """Two beans are picked at a time: of one colour, a black one goes back; of two, the white one."""

    progress = fairness(Fairness.WEAK, all_actions=True)

    black: NumberVar = number(0, BEANS, init=ANY)
    white: NumberVar = number(0, BEANS, init=ANY)

    @initially
    def the_can_is_full(self) -> Bool:
        """Some of each colour, and as many as it holds."""
        return self.black + self.white == BEANS

    @action
    def pick_two_black(self) -> None:
        """One of them goes back."""
        require(self.black >= 2, "there are two black beans")
        self.black = self.black - 1

    @action
    def pick_two_white(self) -> None:
        """A black one takes their place."""
        require(self.white >= 2, "there are two white beans")
        self.black = self.black + 1
        self.white = self.white - 2

    @action
    def pick_one_of_each(self) -> None:
        """The white one goes back."""
        require((self.black >= 1) & (self.white >= 1), "there is one of each")
        self.black = self.black - 1

    @final
    def one_is_left(self) -> Bool:
        return self.black + self.white == 1

    @liveness
    def it_ends(self) -> Eventually:
        """In the end one bean is left."""
        return eventually(self.black + self.white == 1)

    @liveness
    def fewer_and_fewer(self) -> LeadsTo:
        """A full can does not stay full."""
        return leads_to(self.black + self.white == BEANS, self.black + self.white < BEANS)
